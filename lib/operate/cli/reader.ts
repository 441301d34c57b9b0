import type { WindowStart } from '../../stores/account.js'
import { integer } from '../../stores/mysql/connection.js'

/** A value that is bound to a statement. */
export type Value = Buffer | number

/** Rows as arrays of column values, in the order of the select list. */
export type Query = (sql: string, values: readonly Value[]) => Promise<readonly (readonly unknown[])[]>

/** What the two kinds of database write differently. */
export interface Dialect {
  /** The clock that decisions go by, in microseconds since the epoch; bound where the machine's is the one. */
  readonly clock: () => Promise<number>
  /** A hint that a table is read by this index and no other, so that the scan stays as short as it is meant to be. */
  readonly byIndex: (index: string) => string
}

/** What is kept of one key: a row of rate_keys. Times are microseconds since the epoch. */
export interface KeyRow {
  readonly stored: string
  readonly bytes: Buffer
  readonly total: number
  readonly last: number
  readonly stamp: number
  readonly memoWindow: number
  readonly memoFirst: number
  readonly memoBase: number
  readonly blocked: number
  readonly expires: number
}

/** Where a scan by expiry goes on: behind this key. */
export type Bookmark = Pick<KeyRow, 'bytes' | 'expires'>

const COLUMNS = 'rkey, total, last_ts, stamp_ts, memo_window, memo_ts, memo_base, blocked_until, expires_at'

/** How many windows are looked up with one statement. */
const STARTS_A_STATEMENT = 50

/**
 * Reads the limiter's tables beside everything else that goes on: plain SELECTs outside of a transaction, which lock
 * nothing and wait for no lock, each by an index and with a bound. The texts are the same for both kinds of
 * database, and hold no value: keys are bound as bytes, which no collation and no sql_mode reads otherwise.
 */
export class Reader {
  readonly query: Query
  readonly #dialect: Dialect

  constructor(query: Query, dialect: Dialect) {
    this.query = query
    this.#dialect = dialect
  }

  /** The clock that decisions go by, in microseconds since the epoch. */
  now(): Promise<number> {
    return this.#dialect.clock()
  }

  /** The first stored key that is not before these bytes: a seek in the primary key. */
  async firstKey(from: Buffer): Promise<Buffer | null> {
    const rows = await this.query(
      `-- the first key from here on: one seek in the primary key
SELECT rkey
FROM rate_keys
WHERE rkey >= ?
ORDER BY rkey
LIMIT 1`,
      [from],
    )
    return rows[0] === undefined ? null : bytesOf(rows[0][0])
  }

  /** The rows of those of the keys that exist, by primary key. */
  async rows(keys: readonly string[]): Promise<KeyRow[]> {
    if (keys.length === 0) return []
    const rows = await this.query(
      `-- what is kept of these keys, by primary key
SELECT ${COLUMNS}
FROM rate_keys
WHERE rkey IN (${keys.map(() => '?').join(', ')})`,
      keys.map((key) => Buffer.from(key, 'utf8')),
    )
    return rows.map(keyRow)
  }

  /** Keys whose bytes lie between two, in order, by primary key. */
  async range(from: Buffer, to: Buffer, most: number): Promise<KeyRow[]> {
    const rows = await this.query(
      `-- the keys of one limiter, a range of the primary key
SELECT ${COLUMNS}
FROM rate_keys
WHERE rkey >= ? AND rkey < ?
ORDER BY rkey
LIMIT ?`,
      [from, to, most],
    )
    return rows.map(keyRow)
  }

  /** Keys that still count, those that count longest first, by ix_rate_keys_expires_at. */
  async lasting(after: Bookmark | null, since: number, most: number): Promise<KeyRow[]> {
    const rest =
      after === null
        ? 'expires_at >= ?'
        : '(expires_at < ? OR (expires_at = ? AND rkey < ?)) AND expires_at >= ?'
    const bookmark = after === null ? [] : [after.expires, after.expires, after.bytes]
    const rows = await this.query(
      `-- keys that still count, from the end of the index on expires_at; the bound is LIMIT
SELECT ${COLUMNS}
FROM rate_keys ${this.#dialect.byIndex('ix_rate_keys_expires_at')}
WHERE ${rest}
ORDER BY expires_at DESC, rkey DESC
LIMIT ?`,
      [...bookmark, since, most],
    )
    return rows.map(keyRow)
  }

  /** The first event after an instant and the total before it, for some keys: one seek in the primary key each. */
  async starts(
    looks: readonly { readonly bytes: Buffer; readonly after: number }[],
  ): Promise<(WindowStart | null)[]> {
    const found = new Map<number, WindowStart>()
    for (let begin = 0; begin < looks.length; begin += STARTS_A_STATEMENT) {
      const some = looks.slice(begin, begin + STARTS_A_STATEMENT)
      const parts = some.map(
        (_, i) => `SELECT ? AS look, ts, base FROM (
  SELECT ts, total - hits AS base
  FROM rate_events
  WHERE rkey = ? AND ts > ?
  ORDER BY ts
  LIMIT 1
) AS first_${i}`,
      )
      const rows = await this.query(
        `-- where each window begins, by primary key\n${parts.join('\nUNION ALL\n')}`,
        some.flatMap(({ bytes, after }, i) => [begin + i, bytes, after]),
      )
      for (const [i, ts, base] of rows) found.set(integer(i), { first: integer(ts), base: integer(base) })
    }
    return looks.map((_, i) => found.get(i) ?? null)
  }

  /** How many keys may be swept, counted no further than `most`: a range of ix_rate_keys_expires_at. */
  async countExpired(most: number): Promise<number> {
    const rows = await this.query(
      `-- what a sweep would remove: the beginning of the index on expires_at, no further than LIMIT
SELECT COUNT(*)
FROM (
  SELECT 1
  FROM rate_keys ${this.#dialect.byIndex('ix_rate_keys_expires_at')}
  WHERE expires_at < ?
  LIMIT ?
) AS expired`,
      [await this.now(), most],
    )
    return integer(rows[0]?.[0])
  }
}

const bytesOf = (value: unknown): Buffer => Buffer.from(value as Uint8Array)

function keyRow([rkey, ...numbers]: readonly unknown[]): KeyRow {
  const bytes = bytesOf(rkey)
  const [total, last, stamp, memoWindow, memoFirst, memoBase, blocked, expires] = numbers.map(integer)
  return {
    ...{ stored: bytes.toString('utf8'), bytes },
    ...{ total, last, stamp, memoWindow, memoFirst, memoBase, blocked, expires },
  } as KeyRow
}
