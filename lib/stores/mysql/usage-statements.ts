import { SLICE_MICROS } from '../kept-usage.js'
import { int, keyLiteral, NOW } from './statements.js'

/* What is sent to keep usage and to read it, under the same rules as `statements`. */

/** Events of one key that are about to be deleted: `after < ts <= upTo`. */
export interface LeavingEvents {
  /** The key's literal. */
  readonly rkey: string
  readonly after: number
  readonly upTo: number
  /** How long their usage is kept, in microseconds. */
  readonly keepMicros: number
}

/**
 * Adds events to the usage of their keys; goes before the statement that deletes them, in the same transaction and under
 * the locks of the keys. Ranges of the primary key. The sums come from a derived table, whose columns both servers let
 * ON DUPLICATE KEY UPDATE name; on VALUES() and row aliases they disagree (hazard 48).
 */
export const keepUsage = (leaving: readonly LeavingEvents[]): string =>
  `INSERT INTO rate_usage (rkey, slice_ts, cost, expires_at)
SELECT d.rkey, d.slice_ts, d.cost, d.slice_ts + d.kept FROM (
${leaving.map(sumOf).join('\nUNION ALL\n')}
) AS d
ON DUPLICATE KEY UPDATE cost = rate_usage.cost + d.cost, expires_at = GREATEST(rate_usage.expires_at, d.slice_ts + d.kept)`

const sumOf = ({ rkey, after, upTo, keepMicros }: LeavingEvents): string =>
  `SELECT ${rkey} AS rkey, ts - ts % ${SLICE_MICROS} AS slice_ts, SUM(hits) AS cost, ${int(keepMicros)} AS kept FROM rate_events
WHERE rkey = ${rkey} AND ts > ${int(after)} AND ts <= ${int(upTo)} GROUP BY slice_ts`

/**
 * Usage in stretches of some microseconds, of both tables by primary key. One statement, and so one snapshot: what is
 * moved from one table to the other meanwhile is seen in exactly one of them.
 */
export function readUsage(key: string, from: number, to: number, micros: number): string {
  const rkey = keyLiteral(key)
  const sums = (ts: string, cost: string, table: string): string =>
    `SELECT ${ts} - ${ts} % ${int(micros)} AS slice, SUM(${cost}) AS cost FROM ${table}
WHERE rkey = ${rkey} AND ${ts} >= ${int(from)} AND ${ts} < ${int(to)} GROUP BY slice`
  return `${sums('slice_ts', 'cost', 'rate_usage')}\nUNION ALL\n${sums('ts', 'hits', 'rate_events')}`
}

/** Whose usage the database was told to keep. */
export const USAGE_LIMITS = 'SELECT name, keep_micros FROM rate_usage_limits'

/** Tells the database whose usage to keep for how long, or with 0 that none is kept. By primary key. */
export const tellUsageLimit = (name: string, micros: number): string =>
  micros === 0
    ? `DELETE FROM rate_usage_limits WHERE name = ${keyLiteral(name)}`
    : `INSERT INTO rate_usage_limits (name, keep_micros) VALUES (${keyLiteral(name)}, ${int(micros)})
ON DUPLICATE KEY UPDATE keep_micros = ${int(micros)}`

/** Usage that may go, oldest first, by ix_rate_usage_expires_at. */
export const expiredUsage = (rows: number): string =>
  `SELECT rkey, slice_ts FROM rate_usage WHERE expires_at < ${NOW} ORDER BY expires_at LIMIT ${int(rows)}`

/** Deletes those of some rows that are still expired, by primary key. */
export const deleteUsage = (rows: readonly { rkey: string; at: number }[]): string =>
  `DELETE FROM rate_usage WHERE expires_at < ${NOW} AND (
${rows.map(({ rkey, at }) => `(rkey = ${rkey} AND slice_ts = ${int(at)})`).join('\n  OR ')})`
