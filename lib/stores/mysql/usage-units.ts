import type { KeptUsage, UsageSlice } from '../kept-usage.js'
import { commit, type OnCommit } from './commit.js'
import { type Connection, integer } from './connection.js'
import type { Session } from './session.js'
import { bytesLiteral, COMMIT, ROLLBACK } from './statements.js'
import { deleteUsage, expiredUsage, readUsage, tellUsageLimit, USAGE_LIMITS } from './usage-statements.js'

/** Rows of usage that one unit deletes. */
const ROWS_PER_UNIT = 500

/** The table is not there, or this user may not read it. */
const UNKNOWN = new Set<unknown>([1146, 1142])

/** Learns from the database whose usage to keep, and tells it what this store was told. */
export async function agreeOnUsage(
  connection: Connection,
  session: Session,
  usage: KeptUsage,
): Promise<void> {
  try {
    const [found] = await connection.run([USAGE_LIMITS, ROLLBACK])
    const rows = (found?.rows ?? []).map(([name, micros]) => [String(name), integer(micros)] as const)
    const other = usage.agree(new Map(rows))
    if (other.length > 0)
      await connection.run([
        ...session.begin,
        ...other.map(([name, micros]) => tellUsageLimit(name, micros)),
        COMMIT,
      ])
  } catch (error) {
    if (usage.isAsked || !UNKNOWN.has((error as { errno?: unknown }).errno)) throw error
    await connection.run([ROLLBACK])
  }
}

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
