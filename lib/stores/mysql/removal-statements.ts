import { BY_PRIMARY_KEY, int, NOW } from './statements.js'

/* What is sent to sweep and to reset, under the same rules as `statements`. */

/**
 * Takes the sweep for a while, if nobody holds it. What is held for longer than that was taken before the clock stepped
 * back. The one row is found by its primary key.
 */
export const claimSweep = (leaseMicros: number): string =>
  `UPDATE rate_limit_schema SET sweep_until = ${NOW} + ${int(leaseMicros)}
WHERE id = 1 AND sweep_until NOT BETWEEN ${NOW} + 1 AND ${NOW} + ${int(leaseMicros)}`

/** Makes the row that a hand-made schema may lack, so that the sweep can be claimed. */
export const ENSURE_SWEEP_ROW =
  'INSERT INTO rate_limit_schema (id, version) VALUES (1, 1) ON DUPLICATE KEY UPDATE id = id'

/** Keeps the sweep that this process holds, or with 0 gives it up. */
export const extendSweep = (leaseMicros: number): string =>
  `UPDATE rate_limit_schema SET sweep_until = ${NOW} + ${int(leaseMicros)} WHERE id = 1`

/** Keys that may go, oldest first, by ix_rate_keys_expires_at. Not locked: they are checked again under their lock. */
export const expiredKeys = (rows: number): string =>
  `SELECT rkey FROM rate_keys WHERE expires_at < ${NOW} ORDER BY expires_at LIMIT ${int(rows)}`

/** Locks those of the keys that are still expired, in the order of the primary key. */
export const lockExpired = (literals: readonly string[]): string =>
  `SELECT rkey FROM rate_keys ${BY_PRIMARY_KEY} WHERE rkey IN (${literals.join(', ')}) AND expires_at < ${NOW} ORDER BY rkey FOR UPDATE`

/** Keys between two, without those: a range of the primary key. */
export const keysBetween = (after: string, before: string, most: number): string =>
  `SELECT rkey FROM rate_keys ${BY_PRIMARY_KEY} WHERE rkey > ${after} AND rkey < ${before} ORDER BY rkey LIMIT ${int(most)}`

/** The keys that have at least so many events, each by a bounded walk of the primary key. */
export const keysWithEvents = (literals: readonly string[], atLeast: number): string =>
  literals
    .map(
      (rkey) =>
        `(SELECT rkey FROM rate_events WHERE rkey = ${rkey} ORDER BY ts LIMIT 1 OFFSET ${int(atLeast - 1)})`,
    )
    .join('\nUNION ALL\n')

/** The time of a key's nth event, so that deleting up to it stays short; by primary key. */
export const nthEvent = (rkey: string, n: number): string =>
  `SELECT ts FROM rate_events WHERE rkey = ${rkey} ORDER BY ts LIMIT 1 OFFSET ${int(n - 1)}`

export const deleteEventsUpTo = (rkey: string, upTo: number): string =>
  `DELETE FROM rate_events WHERE rkey = ${rkey} AND ts <= ${int(upTo)}`

/** Ranges of the primary key: all events of keys that are locked. */
export const deleteAllEvents = (literals: readonly string[]): string =>
  `DELETE FROM rate_events WHERE rkey IN (${literals.join(', ')})`

export const deleteKeys = (literals: readonly string[]): string =>
  `DELETE FROM rate_keys WHERE rkey IN (${literals.join(', ')})`

/**
 * Locks one key that may exist or not, by its primary key, and tells the time of its newest event, and whether anything
 * but events is kept of it.
 */
export const lockKey = (rkey: string): string =>
  `SELECT GREATEST(last_ts, stamp_ts), blocked_until FROM rate_keys WHERE rkey = ${rkey} FOR UPDATE`

/** Forgets what a key has counted of a fixed window, and its block, at once: its events may take longer. */
export const forgetCount = (rkey: string): string =>
  `UPDATE rate_keys SET memo_ts = 0, blocked_until = 0 WHERE rkey = ${rkey}`

/** Forgets the remembered start of a sliding window, because its event was deleted. */
export const forgetMemo = (rkey: string): string =>
  `UPDATE rate_keys SET memo_window = 0, log_version = log_version + 1 WHERE rkey = ${rkey}`
