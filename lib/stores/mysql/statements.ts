import { TOTALS_GO_ROUND_AT } from '../running-total.js'
import type { RetryLookup } from '../settling-key.js'
import { EVENTS_READ } from './known-log.js'

/*
 * Everything that is sent to MySQL and MariaDB while deciding. No text of a user ever becomes SQL: keys go as hex
 * literals and everything else as checked integers, so neither sql_mode nor a character set nor a collation can
 * change a statement's meaning (hazards 34 to 42). The texts use MySQL 5.7's syntax only.
 */

/** A key as a hexadecimal literal, which every sql_mode reads as the same bytes. */
export const keyLiteral = (key: string): string => bytesLiteral(Buffer.from(key, 'utf8'))

/** The same for a key as the database returned it. */
export const bytesLiteral = (bytes: Buffer): string => `x'${bytes.toString('hex')}'`

/** The key of a literal. */
export const keyOf = (literal: string): string => Buffer.from(literal.slice(2, -1), 'hex').toString('utf8')

/** A number in SQL text. */
export const int = (value: number): string => {
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
 * other locks while the server waits on. Without autocommit a transaction needs no statement to begin; every unit ends
 * its own.
 *
 * When this process or the network vanishes without a word in the middle of a transaction, the server keeps its locks
 * for as long as a session may be idle, by default 8 hours. Ours are never idle for more than 30 seconds; on MariaDB a
 * transaction has a limit of its own.
 */
export const SESSION_SETTINGS = [
  'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED',
  'SET SESSION autocommit = 0, innodb_lock_wait_timeout = 1, lock_wait_timeout = 1, wait_timeout = CAST(LEAST(@@wait_timeout, 45) AS UNSIGNED) /*M!100300 , idle_transaction_timeout = 2 */',
] as const

/** What tells a node of Galera, one server from another, and whether the server's thread is the one the driver knows. */
export const SERVER_FACTS = `SHOW VARIABLES WHERE Variable_name IN
  ('wsrep_on', 'pseudo_thread_id', 'hostname', 'port', 'server_uuid', 'server_uid')`

/**
 * The server's clock in microseconds since the epoch. UTC_TIMESTAMP is fixed when its statement starts, so it is
 * only read in statements that start after the lock was granted. Not SYSDATE, which is unsafe for statement based
 * replication; not UNIX_TIMESTAMP, which goes through the session's time zone.
 */
export const NOW = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`

/**
 * The clock as a statement of its own, behind the one that locks: in that one it would be as old as the wait for the
 * lock. Once, not beside every head: that costs a tenth of the locking statement.
 */
export const CLOCK = `SELECT ${NOW}`

/** What is kept of a key, in the order in which `readHeads` and `lockHeads` answer. */
export const HEAD_COLUMNS =
  'total, last_ts, span, pruned_ts, memo_window, memo_ts, memo_base, blocked_until, log_version, stamp_ts'

/**
 * Creates the missing keys and locks them all, in one statement and in the order of the primary key: other forms
 * of create-or-lock deadlock on keys that do not exist yet (hazards 3, 5, 10).
 */
export const createKeys = (literals: readonly string[]): string =>
  `INSERT INTO rate_keys (rkey) VALUES ${literals.map((key) => `(${key})`).join(', ')} ON DUPLICATE KEY UPDATE rkey = rkey`

/**
 * To be found by primary key, whatever the servers make of it: of a table that is hardly longer than the list they would
 * rather read it all, and a read that locks then waits for rows of other keys that somebody else has locked.
 */
export const BY_PRIMARY_KEY = 'FORCE INDEX (PRIMARY)'

/** The heads of keys, by primary key. In Node's hands they tell most windows already. */
export const readHeads = (literals: readonly string[]): string =>
  `SELECT rkey, ${HEAD_COLUMNS} FROM rate_keys ${BY_PRIMARY_KEY} WHERE rkey IN (${literals.join(', ')})`

/**
 * The same, and locks those that exist, in the order of the primary key: cheaper than `createKeys` and `readHeads` by a
 * fifth of a batch where the keys are known to exist.
 */
export const lockHeads = (literals: readonly string[]): string =>
  `${readHeads(literals)} ORDER BY rkey FOR UPDATE`

/** A look into a key's log: the first events after an instant. */
export interface EventLook {
  readonly key: string
  readonly windowMicros: number
  readonly after: number
}

/**
 * The first events after an instant, and the running total before each, for some keys at one instant: one seek a key.
 *
 * Exactly one key a SELECT, and only literals in it: then each is a seek in the primary key. Over several keys, or with
 * the clock in the expression, the servers walk, and MySQL even sorts, all events of each (measured for 500 keys: 157 ms
 * against 40 ms).
 */
export const readEventsAfter = (looks: readonly EventLook[]): string =>
  looks
    .map(({ key, windowMicros, after }) => {
      const rkey = keyLiteral(key)
      return `(SELECT ${rkey} AS rkey, ${int(windowMicros)} AS w, ts, total - hits FROM rate_events
  WHERE rkey = ${rkey} AND ts > ${int(after)} ORDER BY ts LIMIT ${EVENTS_READ})`
    })
    .join('\nUNION ALL\n')

/** At most this many events of a key are deleted in one unit, so that a unit stays short however much has expired. */
const PRUNE_ROWS = 1000

/** Events that may be deleted: `after < ts <= upTo`. */
export interface PruneLook {
  readonly key: string
  readonly after: number
  readonly upTo: number
}

/**
 * How far each key may be pruned: the first thousand events of its range, by a bounded walk of the primary key.
 *
 * Every column has a name of its own: without one it has its text, keys and times and all, and mysql2 compiles and
 * keeps a parser for each list of names that it has not met (measured: 3,978 more in two minutes of load).
 */
export const readPruneEnds = (looks: readonly PruneLook[]): string =>
  looks
    .map(({ key, after, upTo }) => {
      const rkey = keyLiteral(key)
      return `SELECT ${rkey} AS rkey, COALESCE((SELECT ts FROM rate_events
  WHERE rkey = ${rkey} AND ts > ${int(after)} AND ts <= ${int(upTo)} ORDER BY ts LIMIT 1 OFFSET ${PRUNE_ROWS - 1}), ${int(upTo)}) AS up_to`
    })
    .join('\nUNION ALL\n')

/**
 * When the event happened after which so much had been counted of the window. Walks the primary key from the window's start
 * to it; the remainder is for totals that have gone round.
 */
export const lookupRetry = ({ key, after, base, excess }: RetryLookup): string =>
  `SELECT e.ts FROM rate_events e WHERE e.rkey = ${keyLiteral(key)} AND e.ts > ${int(after)}
  AND MOD(e.total - (${int(base)}) + ${int(TOTALS_GO_ROUND_AT)}, ${int(TOTALS_GO_ROUND_AT)}) >= ${int(excess)}
ORDER BY e.ts LIMIT 1`
