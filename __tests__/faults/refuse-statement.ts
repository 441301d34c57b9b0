const COM_QUERY = 3
const HEADER_BYTES = 4

/** SQLSTATEs with which servers report these errors; all others are of no interest to clients. */
const SQL_STATES: Record<number, string> = { 1213: '40001' }

/**
 * The client's packet with one of its statements replaced by one that makes the server report an error: the statements
 * before it have been executed then, those behind it are not, and a transaction stays open. Null when it is no query or
 * no statement in it begins so.
 */
export function refuseStatement(packet: Buffer, beginning: string, errno: number): Buffer | null {
  if (packet.length <= HEADER_BYTES || packet[HEADER_BYTES] !== COM_QUERY) return null
  // One that a socket delivered in pieces is let through.
  if (packet.readUIntLE(0, 3) !== packet.length - HEADER_BYTES) return null
  // Query attributes, of which there are none, stand before the text.
  const textAt = HEADER_BYTES + (packet[HEADER_BYTES + 1] === 0 ? 3 : 1)
  const statements = packet.toString('latin1', textAt).split(';\n')
  const at = statements.findIndex((statement) => statement.startsWith(beginning))
  if (at < 0) return null
  const state = SQL_STATES[errno] ?? 'HY000'
  statements[at] =
    `SIGNAL SQLSTATE '${state}' SET MYSQL_ERRNO = ${errno}, MESSAGE_TEXT = 'refused by the proxy'`
  const refused = Buffer.concat([packet.subarray(0, textAt), Buffer.from(statements.join(';\n'), 'latin1')])
  refused.writeUIntLE(refused.length - HEADER_BYTES, 0, 3)
  return refused
}
