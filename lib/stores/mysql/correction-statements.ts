import type { EventTake } from '../event-takes.js'
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

/** The event of each key after which there are so many, by a bounded walk of the primary key from its end. */
export const readReach = (literals: readonly string[], events: number): string =>
  literals
    .map(
      (rkey) =>
        `(SELECT rkey, ts FROM rate_events WHERE rkey = ${rkey} ORDER BY ts DESC LIMIT 1 OFFSET ${int(events)})`,
    )
    .join('\nUNION ALL\n')

/**
 * Takes cost out of a key's log: out of its events, and out of the running totals from there on, so that what any
 * window counts stays a subtraction. Ranges of the primary key, each row in one of them.
 */
export function takeFromEvents(rkey: string, takes: readonly EventTake[]): string[] {
  const ranges = takes.flatMap(({ at, cost, sum, before, isGone }) => {
    const event = `rkey = ${rkey} AND ts = ${int(at)}`
    const range = `rkey = ${rkey} AND ts >= ${int(at)} AND ts < ${int(before)}`
    const take = `UPDATE rate_events SET total = total - ${int(sum)}, hits = hits - IF(ts = ${int(at)}, ${int(cost)}, 0) WHERE ${range}`
    return isGone ? [take, `DELETE FROM rate_events WHERE ${event}`] : [take]
  })
  const newestFirst = [...takes].reverse()
  const base = newestFirst.map(({ at, sum }) => `WHEN memo_ts > ${int(at)} THEN ${int(sum)}`).join(' ')
  const gone = takes.flatMap(({ at, isGone }) => (isGone ? [int(at)] : []))
  // The remembered start of a window holds the total before it, unless its event is one that goes.
  const head = `UPDATE rate_keys SET total = total - ${int(newestFirst[0]?.sum ?? 0)}, log_version = log_version + 1,
  memo_base = memo_base - CASE ${base} ELSE 0 END${gone.length > 0 ? `,\n  memo_window = IF(memo_ts IN (${gone.join(', ')}), 0, memo_window)` : ''}
WHERE rkey = ${rkey}`
  return [...ranges, head]
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
