import type { KeyWrite, RetryLookup } from '../settling-key.js'

/*
 * Everything that is sent to MySQL and MariaDB while deciding. No text of a user ever becomes SQL: keys go as hex
 * literals and everything else as checked integers, so neither sql_mode nor a character set nor a collation can
 * change a statement's meaning (hazards 34 to 42). The texts use MySQL 5.7's syntax only.
 */

/** A key as a hexadecimal literal, which every sql_mode reads as the same bytes. */
export const keyLiteral = (key: string): string => bytesLiteral(Buffer.from(key, 'utf8'))

/** The same for a key as the database returned it. */
export const bytesLiteral = (bytes: Buffer): string => `x'${bytes.toString('hex')}'`

const int = (value: number): string => {
  if (!Number.isSafeInteger(value)) throw new RangeError(`Expected a whole number for SQL, got ${value}`)
  return String(value)
}

/** The literals in the byte order of the primary key: the one order in which every process takes its locks. */
export const sortedLiterals = (keys: Iterable<string>): string[] => Array.from(keys, keyLiteral).sort()

export const BEGIN = 'START TRANSACTION'
export const COMMIT = 'COMMIT'
export const ROLLBACK = 'ROLLBACK'

/**
 * Only events later than the lock may be trusted, so each statement must see what was committed before it began:
 * READ COMMITTED. It also takes no gap locks, so that unrelated keys never wait for each other (hazard 4). For the
 * next transaction only: the session is somebody else's (hazard 45).
 */
export const READ_COMMITTED_ONCE = 'SET TRANSACTION ISOLATION LEVEL READ COMMITTED'
export const REPEATABLE_READ_ONCE = 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ'

/**
 * For sessions that are ours alone. Lock waits are cut to a second, the shortest there is (the defaults are 50
 * seconds, and a day or a year for metadata locks): a decision has given up long before, and must not keep its
 * other locks while the server waits on.
 */
export const SESSION_SETTINGS = [
  'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
  'SET SESSION autocommit = 1, innodb_lock_wait_timeout = 1, lock_wait_timeout = 1',
] as const

/**
 * The server's clock in microseconds since the epoch. UTC_TIMESTAMP is fixed when its statement starts, so it is
 * only read in statements that start after the lock was granted. Not SYSDATE, which is unsafe for statement based
 * replication; not UNIX_TIMESTAMP, which goes through the session's time zone.
 */
export const NOW = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`

/** The clock as a statement of its own, for keys that have no row to read it beside. */
export const CLOCK = `SELECT ${NOW}`

/**
 * Creates the missing keys and locks them all, in one statement and in the order of the primary key: other forms
 * of create-or-lock deadlock on keys that do not exist yet (hazards 3, 5, 10).
 */
export const lockKeys = (literals: readonly string[]): string =>
  `INSERT INTO rate_keys (rkey) VALUES ${literals.map((key) => `(${key})`).join(', ')} ON DUPLICATE KEY UPDATE rkey = rkey`

/** The heads of keys, by primary key, and the clock. In Node's hands they tell most windows already. */
export const readHeads = (literals: readonly string[]): string =>
  `SELECT rkey, ${NOW}, total, last_ts, span, pruned_ts, memo_window, memo_ts, memo_base, blocked_until
FROM rate_keys WHERE rkey IN (${literals.join(', ')})`

/** The instant of the decision: never before the key's newest write. See `instantOf`. */
const AT = `GREATEST(${NOW}, k.last_ts + 1)`

/** At most this many events of a key are deleted in one unit, so that a unit stays short however much has expired. */
const PRUNE_ROWS = 1000

/** A window whose first event must be looked up. */
export interface WindowRead {
  readonly key: string
  readonly windowMicros: number
  /** Longest window plus retention that is known for the key. */
  readonly span: number
}

/**
 * One window's first event, the running total before it, and how far its key may be pruned: all that is older than
 * the span, or the first thousand rows of it, or null when it is not due (see `pruneIsDue`).
 *
 * Exactly one key a SELECT: with the key a constant, every subquery is a seek in the primary key. Over several keys
 * the servers cannot seek to a time that differs from key to key: they would walk, and MySQL even sort, all events
 * of each (measured: 60 ms against 1 ms with 100,000 events).
 */
const readWindow = ({ key, windowMicros, span }: WindowRead): string => {
  const inWindow = `FROM rate_events e WHERE e.rkey = k.rkey AND e.ts > ${AT} - ${int(windowMicros)} ORDER BY e.ts LIMIT 1`
  const longest = `GREATEST(k.span, ${int(span)})`
  return `SELECT k.rkey, ${int(windowMicros)}, ${NOW},
  COALESCE((SELECT e.ts ${inWindow}), 0),
  COALESCE((SELECT e.total - e.hits ${inWindow}), 0),
  IF(k.last_ts > 0 AND ${AT} - ${longest} - k.pruned_ts >= ${longest} DIV 8,
    COALESCE(
      (SELECT e.ts FROM rate_events e WHERE e.rkey = k.rkey AND e.ts > k.pruned_ts AND e.ts <= ${AT} - ${longest}
        ORDER BY e.ts LIMIT 1 OFFSET ${PRUNE_ROWS - 1}),
      ${AT} - ${longest}),
    NULL)
FROM rate_keys k WHERE k.rkey = ${keyLiteral(key)}`
}

/** The windows' first events, in one statement, and so at one instant. */
export const readWindows = (reads: readonly WindowRead[]): string =>
  reads.map(readWindow).join('\nUNION ALL\n')

/**
 * What a unit writes, under the locks it holds. REPLACE writes whole heads: with the primary key as the only unique
 * key InnoDB updates the row in place, and it needs neither VALUES() nor a row alias, on whose syntax the servers
 * disagree (hazard 48).
 */
export function writeStatements(writes: readonly KeyWrite[]): string[] {
  const events: string[] = []
  const heads: string[] = []
  const deletes: string[] = []
  for (const { key, head, expiresAt, event, prune } of writes) {
    const rkey = keyLiteral(key)
    if (event) events.push(`(${rkey}, ${int(event.ts)}, ${int(event.hits)}, ${int(event.total)})`)
    heads.push(
      `(${rkey}, ${int(head.total)}, ${int(head.last)}, ${int(head.span)}, ${int(head.pruned)}, ${int(head.memoWindow)}, ${int(head.memoFirst)}, ${int(head.memoBase)}, ${int(head.blocked)}, ${int(expiresAt)})`,
    )
    if (prune) deletes.push(deleteEvents(rkey, prune.after, prune.upTo))
  }
  const statements: string[] = []
  if (events.length > 0) {
    statements.push(`INSERT INTO rate_events (rkey, ts, hits, total) VALUES ${events.join(', ')}`)
  }
  if (heads.length > 0) {
    statements.push(
      `REPLACE INTO rate_keys (rkey, total, last_ts, span, pruned_ts, memo_window, memo_ts, memo_base, blocked_until, expires_at) VALUES ${heads.join(', ')}`,
    )
  }
  return statements.concat(deletes)
}

/** A range of the primary key; without LIMIT, so that it is safe for statement based replication (hazard 44). */
const deleteEvents = (rkey: string, after: number, upTo: number): string =>
  `DELETE FROM rate_events WHERE rkey = ${rkey} AND ts > ${int(after)} AND ts <= ${int(upTo)}`

/** When the event that reaches a running total happened. Walks the primary key from the window's start to it. */
export const lookupRetry = ({ key, after, total }: RetryLookup): string =>
  `SELECT e.ts FROM rate_events e WHERE e.rkey = ${keyLiteral(key)} AND e.ts > ${int(after)} AND e.total >= ${int(total)}
ORDER BY e.ts LIMIT 1`

/** Takes the sweep for a while, if nobody holds it. The one row is found by its primary key. */
export const claimSweep = (leaseMicros: number): string =>
  `UPDATE rate_limit_schema SET sweep_until = ${NOW} + ${int(leaseMicros)} WHERE id = 1 AND sweep_until <= ${NOW}`

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
  `SELECT rkey FROM rate_keys WHERE rkey IN (${literals.join(', ')}) AND expires_at < ${NOW} ORDER BY rkey FOR UPDATE`

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

/** Locks one key that may exist or not, by its primary key. */
export const lockKey = (rkey: string): string =>
  `SELECT last_ts FROM rate_keys WHERE rkey = ${rkey} FOR UPDATE`

/** Forgets the remembered start of the window, because its event was deleted. */
export const forgetMemo = (rkey: string): string =>
  `UPDATE rate_keys SET memo_window = 0, memo_ts = 0 WHERE rkey = ${rkey}`

/** Locks those of the keys that exist, in the order of the primary key. */
export const lockExisting = (literals: readonly string[]): string =>
  `SELECT rkey FROM rate_keys WHERE rkey IN (${literals.join(', ')}) ORDER BY rkey FOR UPDATE`

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
  const head = `UPDATE rate_keys SET total = total - ${int(cost)},
  memo_base = IF(memo_ts > ${int(ts)}, memo_base - ${int(cost)}, memo_base)${remove ? `,\n  memo_window = IF(memo_ts = ${int(ts)}, 0, memo_window)` : ''}
WHERE rkey = ${rkey}`
  const gone = `DELETE FROM rate_events WHERE rkey = ${rkey} AND ts = ${int(ts)}`
  return remove ? [take, head, gone] : [take, head]
}

/** Takes attempts out of a fixed window, if it is still that window, and never more than it holds. */
export const takeFromFixed = (rkey: string, windowStart: number, cost: number): string =>
  `UPDATE rate_keys SET total = total - ${int(cost)}
WHERE rkey = ${rkey} AND memo_ts = ${int(windowStart)} AND total - memo_base >= ${int(cost)}`

/** Blocks a key that is locked; a longer block stays. The row lives for as long as its block. */
export const blockKey = (rkey: string, micros: number): string =>
  `UPDATE rate_keys SET blocked_until = GREATEST(blocked_until, ${NOW} + ${int(micros)}),
  expires_at = GREATEST(expires_at, blocked_until)
WHERE rkey = ${rkey}`
