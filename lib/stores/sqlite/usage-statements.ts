import { type KeptUsage, SLICE_MICROS } from '../kept-usage.js'
import type { SqliteDatabase, SqliteStatement } from './open-sqlite.js'

/* What is sent to keep usage and to read it. Prepared when it is first needed: a file that keeps none may lack the table. */
const SQL = {
  /** Adds the events of a range of one key to its usage, before they are deleted. By primary key. */
  keep: `INSERT INTO rate_usage (rkey, slice_ts, cost, expires_at)
SELECT rkey, ts - ts % ${SLICE_MICROS}, SUM(hits), ts - ts % ${SLICE_MICROS} + ? FROM rate_events
WHERE rkey = ? AND ts > ? AND ts <= ? GROUP BY ts - ts % ${SLICE_MICROS}
ON CONFLICT (rkey, slice_ts) DO UPDATE SET cost = cost + excluded.cost, expires_at = MAX(expires_at, excluded.expires_at)`,

  /** Usage in stretches of some microseconds, of both tables by primary key: one statement, and so one snapshot. */
  read: `SELECT slice_ts - slice_ts % ? AS at, SUM(cost) AS cost FROM rate_usage
WHERE rkey = ? AND slice_ts >= ? AND slice_ts < ? GROUP BY 1
UNION ALL
SELECT ts - ts % ?, SUM(hits) FROM rate_events WHERE rkey = ? AND ts >= ? AND ts < ? GROUP BY 1`,

  /** Some usage that was kept for its time, oldest first, by ix_rate_usage_expires_at. */
  sweep: `DELETE FROM rate_usage WHERE (rkey, slice_ts) IN (
  SELECT rkey, slice_ts FROM rate_usage WHERE expires_at < ? ORDER BY expires_at LIMIT ?)`,

  /** Whose usage the file was told to keep, and to tell it; by primary key. */
  limits: 'SELECT name, keep_micros AS micros FROM rate_usage_limits',
  tellLimit: `INSERT INTO rate_usage_limits (name, keep_micros) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET keep_micros = excluded.keep_micros`,
  forgetLimit: 'DELETE FROM rate_usage_limits WHERE name = ?',
} as const

const HAS_LIMITS = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'rate_usage_limits'"

/** The statements by name. */
export type UsageStatements = Record<keyof typeof SQL, SqliteStatement>

const prepared = new WeakMap<SqliteDatabase, UsageStatements>()

/** The statements of one open file. */
export function usageStatements(database: SqliteDatabase): UsageStatements {
  let statements = prepared.get(database)
  if (statements === undefined) {
    statements = Object.fromEntries(
      Object.entries(SQL).map(([name, sql]) => [name, database.prepare(sql)]),
    ) as UsageStatements
    prepared.set(database, statements)
  }
  return statements
}

/** Learns from the file whose usage to keep, and tells it what this store was told. */
export function agreeOnUsage(database: SqliteDatabase, usage: KeptUsage): void {
  if (!usage.isAsked && database.prepare(HAS_LIMITS).get() === undefined) return
  const { limits, tellLimit, forgetLimit } = usageStatements(database)
  const rows = limits.all() as { name: Uint8Array; micros: number }[]
  const found = new Map(rows.map(({ name, micros }) => [Buffer.from(name).toString('utf8'), micros]))
  for (const [name, micros] of usage.agree(found)) {
    const bytes = Buffer.from(name, 'utf8')
    if (micros === 0) forgetLimit.run(bytes)
    else tellLimit.run(bytes, micros)
  }
}
