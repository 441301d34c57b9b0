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
 * Locks the row, by primary key, and changes it only if it is as assumed: one row or none. The clock is that of the
 * statement's beginning, before the lock. That is exact here, because a row that another transaction has changed since
 * is not as assumed.
 */
export function assumedWrite(
  { key, head, expiresAt }: KeyWrite,
  { head: before, from, until }: Assumption,
): string {
  // See `instantOf`.
  const at = `GREATEST(${NOW}, ${int(before.last + 1)})`
  // A window that was empty begins with this write.
  const first = head.memoFirst === head.last ? at : int(head.memoFirst)
  return `UPDATE rate_keys SET total = ${int(head.total)}, last_ts = LAST_INSERT_ID(${at}), span = ${int(head.span)},
  pruned_ts = ${int(head.pruned)}, memo_window = ${int(head.memoWindow)}, memo_ts = ${first}, memo_base = ${int(head.memoBase)},
  log_version = ${int(head.logVersion)}, expires_at = ${int(expiresAt)}
WHERE rkey = ${keyLiteral(key)} AND total = ${int(before.total)} AND last_ts = ${int(before.last)}
  AND blocked_until = ${int(before.blocked)} AND log_version = ${int(before.logVersion)}
  AND ${NOW} >= ${int(from)} AND ${NOW} < ${int(until)}`
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

/** The errors that `assumedEvent` stops with: NULL for a column that takes none, and a subquery of two rows. */
const STALE = new Set<unknown>([1048, 1242])

/** Whether a packet was stopped because a key was not as assumed. */
export const isStale = (error: unknown): boolean => STALE.has((error as { errno?: unknown } | null)?.errno)
