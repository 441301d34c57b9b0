import { BY_PRIMARY_KEY, int, NOW } from './statements.js'

/* What is sent to give hits back and to block keys, under the same rules as `statements`. */

/** Locks those of the keys that exist, in the order of the primary key. */
export const lockExisting = (literals: readonly string[]): string =>
  `SELECT rkey FROM rate_keys ${BY_PRIMARY_KEY} WHERE rkey IN (${literals.join(', ')}) ORDER BY rkey FOR UPDATE`

/** The events of some keys and instants, each by its primary key. */
export const readEvents = (events: readonly { rkey: string; ts: number }[]): string =>
  events
    .map(({ rkey, ts }) => `SELECT rkey, ts, hits FROM rate_events WHERE rkey = ${rkey} AND ts = ${int(ts)}`)
    .join('\nUNION ALL\n')

/**
 * Takes cost out of a key's log: out of its event, and out of the running totals from there on, so that what any
 * window counts stays a subtraction. Rows are found by primary key, and were written since the hit.
 */
export const takeFromEvents = (rkey: string, ts: number, cost: number, remove: boolean): string[] => {
  const range = `WHERE rkey = ${rkey} AND ts >= ${int(ts)}`
  const take = `UPDATE rate_events SET total = total - ${int(cost)}, hits = hits - IF(ts = ${int(ts)}, ${int(cost)}, 0) ${range}`
  // The remembered start of a window holds the total before it, unless its event is the one that goes.
  const head = `UPDATE rate_keys SET total = total - ${int(cost)}, log_version = log_version + 1,
  memo_base = IF(memo_ts > ${int(ts)}, memo_base - ${int(cost)}, memo_base)${remove ? `,\n  memo_window = IF(memo_ts = ${int(ts)}, 0, memo_window)` : ''}
WHERE rkey = ${rkey}`
  const gone = `DELETE FROM rate_events WHERE rkey = ${rkey} AND ts = ${int(ts)}`
  return remove ? [take, head, gone] : [take, head]
}

/**
 * Takes attempts that were counted at `ts` out of a fixed window, if it is still that window and the key was not reset
 * since, when its log began anew; and never more than it holds.
 */
export const takeFromFixed = (rkey: string, windowStart: number, ts: number, cost: number): string =>
  `UPDATE rate_keys SET total = total - ${int(cost)}
WHERE rkey = ${rkey} AND memo_ts = ${int(windowStart)} AND log_version <= ${int(ts)} AND total - memo_base >= ${int(cost)}`

/** Takes cost out of the one event of an audited fixed window; the event goes when nothing is left of it. */
export const takeFromAudit = (rkey: string, ts: number, cost: number): string[] => [
  `UPDATE rate_events SET hits = hits - ${int(cost)} WHERE rkey = ${rkey} AND ts = ${int(ts)} AND hits >= ${int(cost)}`,
  `DELETE FROM rate_events WHERE rkey = ${rkey} AND ts = ${int(ts)} AND hits = 0`,
]

/**
 * Blocks a key that is locked; a longer block stays. The row lives for as long as its block, which is not asked for by its
 * column: with MariaDB's SIMULTANEOUS_ASSIGNMENT that would be the old one.
 */
export const blockKey = (rkey: string, micros: number): string =>
  `UPDATE rate_keys SET blocked_until = GREATEST(blocked_until, ${NOW} + ${int(micros)}),
  expires_at = GREATEST(expires_at, ${NOW} + ${int(micros)})
WHERE rkey = ${rkey}`
