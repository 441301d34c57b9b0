import type { UsageSlice } from '../kept-usage.js'
import { commit, type OnCommit } from './commit.js'
import { type Connection, integer } from './connection.js'
import type { Session } from './session.js'
import { bytesLiteral, ROLLBACK } from './statements.js'
import { deleteUsage, expiredUsage, readUsage } from './usage-statements.js'

/** Rows of usage that one unit deletes. */
const ROWS_PER_UNIT = 500

/** Reads the usage of a key, in one statement. */
export async function readUsageUnit(
  connection: Connection,
  session: Session,
  range: { readonly key: string; readonly from: number; readonly to: number; readonly micros: number },
): Promise<UsageSlice[]> {
  const { key, from, to, micros } = range
  const results = await connection.run([...session.begin, readUsage(key, from, to, micros), ROLLBACK])
  const rows = results.at(-2)?.rows ?? []
  return rows.map(([at, cost]) => ({ at: integer(at), cost: integer(cost) }))
}

/** Deletes some usage that was kept for its time; tells whether there may be more. */
export async function sweepUsageUnit(
  connection: Connection,
  session: Session,
  onCommit: OnCommit,
  keepSweep: string,
): Promise<boolean> {
  // Rolled back at once: without autocommit a read leaves a snapshot open.
  const [expired] = await connection.run([expiredUsage(ROWS_PER_UNIT), ROLLBACK])
  const rows = (expired?.rows ?? []).map(([rkey, at]) => ({
    rkey: bytesLiteral(rkey as Buffer),
    at: integer(at),
  }))
  if (rows.length === 0) return false
  await commit(connection, onCommit, [...session.begin, deleteUsage(rows), keepSweep])
  return rows.length === ROWS_PER_UNIT
}
