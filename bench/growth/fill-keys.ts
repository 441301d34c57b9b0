import { createConnection, type RowDataPacket } from 'mysql2/promise'

/** What a table shall hold of some keys: sliding windows, as the store itself would have left them. */
export interface Filling {
  /** The limiter's name: stored keys begin with it. */
  readonly name: string
  /** How many keys: `keyOf(first)` and on. */
  readonly keys: number
  /** The number of the first one. Default 0. */
  readonly first?: number
  /** Events of each key. */
  readonly events: number
  /** Cost of each event. */
  readonly hits: number
  readonly windowSeconds: number
  /** How long ago the oldest and the newest event of each key happened; the others lie evenly between. */
  readonly oldestSeconds: number
  readonly newestSeconds: number
}

/** The key with a number, of one length, so that keys made in turn are in the order of the primary key. */
export const keyOf = (number: number): string => `key${String(number).padStart(7, '0')}`

/** Rows that one statement writes. */
const CHUNK_ROWS = 100_000
/** A head stays for a minute more than it counts, as in the store. */
const CLOCK_STEP_MICROS = 60_000_000

/**
 * Fills the store's tables by statements that make many rows each: the store itself would take minutes for what the
 * larger sizes need. Ends with fresh statistics, which a table that grew by itself would have too.
 */
export async function fillKeys(uri: string, fillings: readonly Filling[]): Promise<void> {
  const connection = await createConnection({ uri, multipleStatements: true })
  try {
    // The rows are only to be there: nobody replicates them.
    await connection.query('SET SESSION sql_log_bin = 0')
    await connection.query(`CREATE TABLE IF NOT EXISTS thousand (n INT NOT NULL PRIMARY KEY);
INSERT IGNORE INTO thousand WITH RECURSIVE up (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM up WHERE n < 999) SELECT n FROM up`)
    const [rows] = await connection.query<RowDataPacket[]>(
      `SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS now`,
    )
    const now = Number(rows[0]?.now)
    for (const filling of fillings) {
      for (const [sql, values] of statementsOf(filling, now)) await connection.query(sql, values)
    }
    await connection.query('ANALYZE TABLE rate_keys, rate_events')
  } finally {
    await connection.end()
  }
}

/** The numbers from `from` to below `to`, in order: rows come in the order of the primary key. */
const NUMBERS = `(SELECT ? + a.n * 1000 + b.n AS n FROM thousand a STRAIGHT_JOIN thousand b
  WHERE a.n < ? AND ? + a.n * 1000 + b.n < ?) numbers`

const HEADS = `INSERT INTO rate_keys
  (rkey, total, last_ts, span, pruned_ts, memo_window, memo_ts, memo_base, blocked_until, expires_at)
SELECT CONCAT(?, LPAD(? + n, 7, '0')), ?, ?, ?, ?, ?, ?, 0, 0, ? FROM ${NUMBERS}`

const EVENTS = `INSERT INTO rate_events (rkey, ts, hits, total)
SELECT CONCAT(?, LPAD(? + n DIV ?, 7, '0')), ? + ? * (n MOD ?), ?, ? * (n MOD ? + 1) FROM ${NUMBERS}`

function* statementsOf(filling: Filling, now: number): Generator<[string, (string | number)[]]> {
  const { name, keys, first = 0, events, hits, windowSeconds, oldestSeconds, newestSeconds } = filling
  const window = Math.round(windowSeconds * 1e6)
  const oldest = now - Math.round(oldestSeconds * 1e6)
  const spacing = events > 1 ? Math.floor(((oldestSeconds - newestSeconds) * 1e6) / (events - 1)) : 0
  const newest = oldest + spacing * (events - 1)
  const step = Math.max(1, Math.floor(window / 4))
  const expiresAt = Math.ceil((newest + window + CLOCK_STEP_MICROS) / step) * step
  const prefix = `${name}:key`
  // Pruned up to just before the first event, which is also the remembered start of the window.
  const head = [events * hits, newest, window, oldest - 1, window, oldest, expiresAt]
  for (const numbers of chunks(keys)) yield [HEADS, [prefix, first, ...head, ...numbers]]
  for (const numbers of chunks(keys * events)) {
    yield [EVENTS, [prefix, first, events, oldest, spacing, events, hits, hits, events, ...numbers]]
  }
}

function* chunks(rows: number): Generator<number[]> {
  for (let from = 0; from < rows; from += CHUNK_ROWS) {
    const to = Math.min(rows, from + CHUNK_ROWS)
    yield [from, Math.ceil((to - from) / 1000), from, to]
  }
}
