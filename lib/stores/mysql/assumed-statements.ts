import type { Head } from '../account.js'
import type { KeyWrite } from '../settling-key.js'
import { int, keyLiteral, NOW } from './statements.js'

/*
 * What is sent to decide upon a remembered head: for each key a write that says what it takes the key to be, and its event,
 * which stops the packet before COMMIT if that was wrong. MySQL 5.7's syntax, and only for the store's own sessions,
 * since the instant of a write is carried on in LAST_INSERT_ID(), from where the driver reads it too.
 */

/** A head as remembered, and the instants between which what was decided upon it is exact. */
export interface Assumption {
  readonly head: Readonly<Head>
  readonly from: number
  readonly until: number
}

/**
 * Locks the row, by primary key, and changes it only if it is as assumed: one row or none. A key that is taken to be new
 * is inserted, which fails where it is not.
 *
 * The clock is that of the statement's beginning, before the lock. That is exact here, because a row that another
 * transaction has changed since is not as assumed.
 */
export function assumedWrite(write: KeyWrite, { head: before, from, until }: Assumption): string {
  const { head } = write
  // See `instantOf`. What was computed from an estimate of it is computed again: a window that was empty begins with this
  // write, and so does the log of a new key.
  const at = `GREATEST(${NOW}, ${int(before.last + 1)})`
  const valid = `${NOW} >= ${int(from)} AND ${NOW} < ${int(until)}`
  const columns = {
    total: int(head.total),
    last_ts: `LAST_INSERT_ID(${at})`,
    span: int(head.span),
    pruned_ts: before.last === 0 ? `${at} - 1` : int(head.pruned),
    memo_window: int(head.memoWindow),
    memo_ts: head.memoFirst === head.last ? at : int(head.memoFirst),
    memo_base: int(head.memoBase),
    log_version: head.logVersion === head.last ? at : int(head.logVersion),
    expires_at: int(write.expiresAt),
  }
  const rkey = keyLiteral(write.key)
  if (before.last === 0) {
    return `INSERT INTO rate_keys (rkey, ${Object.keys(columns).join(', ')})
SELECT ${[rkey, ...Object.values(columns)].join(', ')} FROM DUAL WHERE ${valid}`
  }
  const set = Object.entries(columns).map(([column, value]) => `${column} = ${value}`)
  return `UPDATE rate_keys SET ${set.join(', ')}
WHERE rkey = ${rkey} AND total = ${int(before.total)} AND last_ts = ${int(before.last)}
  AND blocked_until = ${int(before.blocked)} AND log_version = ${int(before.logVersion)} AND ${valid}`
}

/**
 * The event of the write before it, at the instant of that. If that changed no row, the packet stops here: NULL in a column
 * that takes none is an error in every sql_mode, as long as the INSERT has one row. (A subquery of two rows would stop it
 * too, and costs a tenth of the packet.)
 */
export const assumedEvent = ({ key, event }: KeyWrite): string =>
  event === null
    ? 'SET @rate_limit_proved = IF(ROW_COUNT() = 1, 1, (SELECT 1 UNION SELECT 2))'
    : `INSERT INTO rate_events (rkey, ts, hits, total)
VALUES (${keyLiteral(key)}, IF(ROW_COUNT() = 1, LAST_INSERT_ID(), NULL), ${int(event.hits)}, ${int(event.total)})`

/** NULL for a column that takes none, a subquery of two rows, and a key that was taken to be new. */
const STALE = new Set<unknown>([1048, 1242, 1062])

/** Whether a packet was stopped because a key was not as assumed. */
export const isStale = (error: unknown): boolean => STALE.has((error as { errno?: unknown } | null)?.errno)
