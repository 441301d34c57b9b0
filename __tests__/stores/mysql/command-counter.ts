import { connect, createServer, type Server, type Socket } from 'node:net'

/** A relay in front of a server that sees what is asked of it: each command is a round trip. */
export interface CommandCounter {
  /** The server's address, through the relay. */
  readonly uri: string
  /** Connections since the start. */
  readonly connections: number
  /** Commands since the last call. */
  take(): number
  /** The same, as the statements of each. */
  takeStatements(): string[][]
  /** Breaks the connection of the next command whose SQL is matched, instead of passing it on. */
  breakAt(matches: (sql: string) => boolean): void
  stop(): Promise<void>
}

/** The command that sends SQL. */
const COM_QUERY = 3

/**
 * Starts a relay. A client's packet has a length of three bytes and a number in its sequence; a command is number 0.
 *
 * @param uri - of a server that is asked without TLS and without compression
 */
export async function countCommands(uri: string): Promise<CommandCounter> {
  const target = new URL(uri)
  const sockets = new Set<Socket>()
  let commands: string[][] = []
  let connections = 0
  let breaksAt: ((sql: string) => boolean) | null = null
  const relay: Server = createServer((client) => {
    const server = connect(Number(target.port), target.hostname)
    connections += 1
    let rest = Buffer.alloc(0)
    client.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= 4 && rest.length >= 4 + rest.readUIntLE(0, 3)) {
        const end = 4 + rest.readUIntLE(0, 3)
        const sql = rest[4] === COM_QUERY ? rest.toString('utf8', 5, end) : ''
        if (rest[3] === 0) commands.push(sql.split(/;\n/))
        rest = rest.subarray(end)
        if (breaksAt?.(sql) !== true) continue
        breaksAt = null
        client.destroy()
        return
      }
      server.write(chunk)
    })
    server.on('data', (chunk) => client.write(chunk))
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        client.destroy()
        server.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  const takeStatements = (): string[][] => {
    const taken = commands
    commands = []
    return taken
  }
  const own = new URL(uri)
  own.port = String((relay.address() as { port: number }).port)
  return {
    uri: own.href,
    get connections() {
      return connections
    },
    take: () => takeStatements().length,
    takeStatements,
    breakAt: (matches) => {
      breaksAt = matches
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => relay.close(resolve))
    },
  }
}
