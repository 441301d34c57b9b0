import { TOTALS_GO_ROUND_AT } from '../running-total.js'
import type { SqliteDatabase, SqliteStatement } from './open-sqlite.js'

/*
 * Everything that is sent to SQLite, prepared once. What decides runs between BEGIN IMMEDIATE, which takes the write lock
 * before the first read (hazard 97), and COMMIT; so nothing read can be stale.
 */
const SQL = {
  begin: 'BEGIN IMMEDIATE',
  commit: 'COMMIT',

  /** By primary key. */
  head: `SELECT total, last_ts AS last, span, pruned_ts AS pruned, memo_window AS memoWindow,
  memo_ts AS memoFirst, memo_base AS memoBase, blocked_until AS blocked,
  log_version AS logVersion, stamp_ts AS stamp, expires_at AS expiresAt FROM rate_keys WHERE rkey = ?`,

  /** The window's first event and the total before it: one seek in the primary key. */
  firstEvent: `SELECT ts AS first, total - hits AS base FROM rate_events WHERE rkey = ? AND ts > ? ORDER BY ts LIMIT 1`,

  /**
   * When the event happened after which so much had been counted of the window: walks the primary key from the window's
   * start to it. The remainder is for totals that have gone round.
   */
  reachedAt: `SELECT ts FROM rate_events WHERE rkey = ? AND ts > ?
  AND (total - ? + ${TOTALS_GO_ROUND_AT}) % ${TOTALS_GO_ROUND_AT} >= ? ORDER BY ts LIMIT 1`,

  insertEvent: 'INSERT INTO rate_events (rkey, ts, hits, total) VALUES (?, ?, ?, ?)',

  /** By primary key. */
  updateHead: `UPDATE rate_keys SET total = ?, last_ts = ?, span = ?, pruned_ts = ?, memo_window = ?, memo_ts = ?,
  memo_base = ?, blocked_until = ?, log_version = ?, stamp_ts = ? WHERE rkey = ?`,
  /** Apart, and only when it changes: SQLite writes an index anew when its column is set, also to what it was. */
  updateExpiry: 'UPDATE rate_keys SET expires_at = ? WHERE rkey = ?',
  insertHead: `INSERT INTO rate_keys
  (total, last_ts, span, pruned_ts, memo_window, memo_ts, memo_base, blocked_until, log_version, stamp_ts, rkey, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,

  /** A range of the primary key that begins after the rows deleted before. */
  pruneEvents: 'DELETE FROM rate_events WHERE rkey = ? AND ts > ? AND ts <= ?',

  eventHits: 'SELECT hits FROM rate_events WHERE rkey = ? AND ts = ?',
  /** A refund: out of the event, and out of the running totals from there on. By primary key. */
  takeFromEvent: 'UPDATE rate_events SET hits = hits - ? WHERE rkey = ? AND ts = ?',
  takeFromTotals: 'UPDATE rate_events SET total = total - ? WHERE rkey = ? AND ts >= ? AND ts < ?',
  deleteEvent: 'DELETE FROM rate_events WHERE rkey = ? AND ts = ? AND hits = 0',

  /** A range of the primary key. */
  keysBetween: 'SELECT rkey FROM rate_keys WHERE rkey > ? AND rkey < ? ORDER BY rkey LIMIT ?',

  deleteEvents: 'DELETE FROM rate_events WHERE rkey = ?',
  deleteKey: 'DELETE FROM rate_keys WHERE rkey = ?',

  /** By ix_rate_keys_expires_at. */
  expiredKeys: 'SELECT rkey FROM rate_keys WHERE expires_at < ? ORDER BY expires_at LIMIT ?',

  /** The time of a key's nth event, counted from 0, by primary key; so that a sweep holds the write lock only briefly. */
  nthEvent: 'SELECT ts FROM rate_events WHERE rkey = ? ORDER BY ts LIMIT 1 OFFSET ?',

  /** The same from the newest on. */
  nthNewestEvent: 'SELECT ts FROM rate_events WHERE rkey = ? ORDER BY ts DESC LIMIT 1 OFFSET ?',

  /** Takes the sweep for a while, if nobody holds it. What is held for longer was taken before the clock stepped back. */
  claimSweep:
    'UPDATE rate_limit_schema SET sweep_until = ? WHERE id = 1 AND sweep_until NOT BETWEEN ? + 1 AND ?',
  setSweepUntil: 'UPDATE rate_limit_schema SET sweep_until = ? WHERE id = 1',

  sweepUntil: 'SELECT sweep_until AS n FROM rate_limit_schema WHERE id = 1',
  /** Reads an index from its beginning, and no further than needed. */
  countKeys: 'SELECT count(*) AS n FROM (SELECT 1 FROM rate_keys LIMIT ?)',
  countEvents: 'SELECT count(*) AS n FROM (SELECT 1 FROM rate_events LIMIT ?)',
  fileSize: 'SELECT page_count * page_size AS n FROM pragma_page_count(), pragma_page_size()',
} as const

/** The statements by name. */
export type Statements = Record<keyof typeof SQL, SqliteStatement>

export const prepareStatements = (database: SqliteDatabase): Statements =>
  Object.fromEntries(Object.entries(SQL).map(([name, sql]) => [name, database.prepare(sql)])) as Statements
