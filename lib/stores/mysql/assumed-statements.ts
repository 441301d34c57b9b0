import type { Head } from '../account.js'
import type { KeyWrite } from '../settling-key.js'
import { HEAD_COLUMNS, int, keyLiteral, NOW } from './statements.js'
import { insertEvents } from './write-statements.js'

/*
 * What is sent to decide upon remembered heads: one statement takes the clock, one writes all heads and says what it takes
 * each to be, one writes their events and stops the packet before COMMIT if that was wrong. MySQL 5.7's syntax, and
 * only for the store's own sessions, since it changes their sql_mode: where that is strict, NULL in a column that takes none
 * is an error, also in statements of several rows.
 */

/** A head as remembered, and the instants between which what was decided upon it is exact. */
export interface Assumption {
  readonly head: Readonly<Head>
  readonly from: number
  readonly until: number
}

/** A write, and what it is made upon. */
export interface AssumedWrite {
  readonly write: KeyWrite
  readonly assumption: Assumption
}

/** The instant of the packet. */
const AT = '@rate_limit_at'

/**
 * The statements of a packet, but COMMIT. The second one's LAST_INSERT_ID() is the instant of the decision.
 *
 * The clock is that of the packet's beginning, before the locks. That is exact here, because a row that another
 * transaction has changed since is not as assumed.
 *
 * @param writes - in the order of the primary key, in which every process takes its locks
 */
export function assumedStatements(writes: readonly AssumedWrite[]): string[] {
  return [
    `SET ${AT} = ${NOW}, SESSION sql_mode = 'STRICT_ALL_TABLES'`,
    headsStatement(writes),
    proofStatement(writes),
  ]
}

/**
 * Locks the rows, by primary key, and changes them if they are as assumed. What a row is taken to be stands in columns
 * of the new row that mean something else otherwise: the old total in `stamp_ts`, the old `last_ts` in its own place.
 * VALUES() is deprecated in MySQL 8, but the row alias that follows it is not known to 5.7 or MariaDB (hazard 48).
 *
 * A key that is taken to be new is inserted as it shall be. If it is there after all, it is not as assumed: its `last_ts`
 * cannot be both that instant and before it.
 */
function headsStatement(writes: readonly AssumedWrite[]): string {
  const rows = writes.map(({ write: { key, head, expiresAt }, assumption: { head: before } }) => {
    const isNew = before.last === 0
    // What was computed from an estimate of the instant is that instant: a window that was empty begins with this
    // write, and so does the log of a new key.
    const columns = [
      int(head.total),
      isNew ? `LAST_INSERT_ID(${AT})` : int(before.last),
      int(head.span),
      isNew ? `${AT} - 1` : int(head.pruned),
      int(head.memoWindow),
      head.memoFirst === head.last ? AT : int(head.memoFirst),
      int(head.memoBase),
      int(head.blocked),
      isNew ? AT : int(head.logVersion),
      isNew ? '0' : int(before.total),
      int(expiresAt),
    ]
    return `(${keyLiteral(key)}, ${columns.join(', ')})`
  })
  return `INSERT INTO rate_keys (rkey, ${HEAD_COLUMNS}, expires_at) VALUES ${rows.join(', ')}
ON DUPLICATE KEY UPDATE total = IF(total = VALUES(stamp_ts) AND last_ts = VALUES(last_ts) AND last_ts < ${AT} AND stamp_ts = 0
  AND blocked_until = VALUES(blocked_until) AND log_version = VALUES(log_version), VALUES(total), NULL),
  last_ts = LAST_INSERT_ID(${AT}), span = VALUES(span), pruned_ts = VALUES(pruned_ts), memo_window = VALUES(memo_window),
  memo_ts = VALUES(memo_ts), memo_base = VALUES(memo_base), expires_at = VALUES(expires_at)`
}

/**
 * The events. The first one is NULL, which stops the packet, unless each row was there or not as assumed, which shows in
 * their count (an inserted row counts once and a changed one twice), and the instant is one for which the decisions hold.
 */
function proofStatement(writes: readonly AssumedWrite[]): string {
  const affected = writes.reduce((sum, { assumption }) => sum + (assumption.head.last === 0 ? 1 : 2), 0)
  const from = Math.max(...writes.map(({ assumption }) => assumption.from))
  const until = Math.min(...writes.map(({ assumption }) => assumption.until))
  const proof = `ROW_COUNT() = ${affected} AND ${AT} >= ${int(from)} AND ${AT} < ${int(until)}`
  const events = writes.flatMap(({ write: { key, event } }) => (event === null ? [] : [{ key, event }]))
  // Fixed windows write none. A subquery of two rows is an error too, and costs more.
  if (events.length === 0) return `SET @rate_limit_proved = IF(${proof}, 1, (SELECT 1 UNION SELECT 2))`
  const rows = events.map(
    ({ key, event }, i) =>
      `(${keyLiteral(key)}, ${i === 0 ? `IF(${proof}, ${AT}, NULL)` : AT}, ${int(event.hits)}, ${int(event.total)})`,
  )
  return insertEvents(rows)
}

/** NULL for a column that takes none, and a subquery of two rows. */
const STALE = new Set<unknown>([1048, 1242])

/** Whether a packet was stopped because a key was not as assumed. */
export const isStale = (error: unknown): boolean => STALE.has((error as { errno?: unknown } | null)?.errno)
