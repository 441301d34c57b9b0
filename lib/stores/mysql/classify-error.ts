import { StoreError, type StoreErrorCode } from '../store-error.js'

/**
 * What a failed unit calls for.
 *
 * - `conflict`: another transaction was in the way; roll back and run the whole unit again.
 * - `isolation`: the server cannot write at READ COMMITTED; run the unit again at its own level.
 * - `broken`: the connection is of no more use.
 * - `failed`: nothing a retry would change.
 */
export type Remedy = 'conflict' | 'isolation' | 'broken' | 'failed'

/**
 * 1205 lock wait timeout · 1213 deadlock, Galera's at COMMIT too · 1020 record changed since last read (MariaDB's
 * snapshot isolation) · 1568 a transaction that the pool's last user left open: a ROLLBACK and a new try · 1180 and 3101 Group Replication's certification, at COMMIT · 3572 NOWAIT · 8002 and 9007 TiDB.
 */
const CONFLICT = new Set([1205, 1213, 1020, 1180, 3101, 3572, 8002, 9007, 1568])

/** 1665: READ COMMITTED while the binary log is statement based (hazard 44). */
const BINLOG_STATEMENT = 1665

/** A Galera node without its cluster, which refuses every statement. */
const NOT_READY = 1047

/** 1047 Galera node not ready · 1053 shutdown · 3032 offline mode. */
const NOT_IN_SERVICE = new Set([NOT_READY, 1053, 3032])

/** 1927 and 1317 killed · 3169 killed · 4031 idle too long. */
const BROKEN = new Set([1927, 1317, 3169, 4031])

/**
 * 1290 and 1836 read only · 1015, 1036 and 1874 started with innodb_read_only · 1792 read-only transaction · 3100 Group
 * Replication refuses writes.
 */
const READ_ONLY = new Set([1290, 1836, 1015, 1036, 1874, 1792, 3100])

/** 1040 too many connections · 1203, 1226 of this user. */
const NONE_TO_SPARE = new Set([1040, 1203, 1226])

/** 1461 too many prepared statements. */
const CAPACITY = new Set([...NONE_TO_SPARE, 1461])

/** 1044, 1045, 1142, 1227 privileges · 1046 no database named · 1049 no such database · 1251, 1524 login method · 3159 TLS required. */
const CONFIG = new Set([1044, 1045, 1142, 1227, 1046, 1049, 1251, 1524, 3159])

/** 1146 no such table · 1054 no such column · 1136 column count · 1364 column without default. */
const SCHEMA = new Set([1146, 1054, 1136, 1364])

/** mysql2 throws plain errors without a code for these (hazard 90). */
const CAPACITY_MESSAGES = new Set(['Queue limit reached.', 'No connections available.'])
const CLOSED_MESSAGES = new Set(['Pool is closed.'])

interface DriverError {
  readonly errno?: unknown
  readonly code?: unknown
  readonly fatal?: unknown
  readonly message?: unknown
}

/**
 * Whether the server has refused to write: nothing is committed, even where COMMIT was in the same packet. Not 1053 and
 * the like, which can come while a COMMIT is under way.
 */
export function isRefusal(error: unknown): boolean {
  const { errno } = (error ?? {}) as DriverError
  return typeof errno === 'number' && (errno === NOT_READY || READ_ONLY.has(errno))
}

/** Whether the server has refused one more connection. */
export function hasNoneToSpare(error: unknown): boolean {
  const { errno } = (error ?? {}) as DriverError
  return typeof errno === 'number' && NONE_TO_SPARE.has(errno)
}

/** Whether the server takes no writes at the moment, so that another host must be found where there are several. */
export function isUnfit(error: unknown): boolean {
  const { errno } = (error ?? {}) as DriverError
  return typeof errno === 'number' && (NOT_IN_SERVICE.has(errno) || READ_ONLY.has(errno))
}

/** What to do about an error of the driver, decided by its number first: `code` is not always there. */
export function remedyOf(error: unknown): Remedy {
  if (error instanceof StoreError) return 'failed'
  const { errno, code, fatal } = (error ?? {}) as DriverError
  if (typeof errno === 'number' && errno > 0) {
    if (CONFLICT.has(errno)) return 'conflict'
    if (errno === BINLOG_STATEMENT) return 'isolation'
    // A read-only server may be an old primary: the connection must go, so that the next one finds the new primary.
    if (BROKEN.has(errno) || isUnfit(error)) return 'broken'
    return 'failed'
  }
  return fatal === true || typeof code === 'string' ? 'broken' : 'failed'
}

/** All but the one that says that the store was not asked. */
type Cause = Exclude<StoreErrorCode, 'ERR_STORE_DOWN'>

const codeOf = (error: DriverError): Cause => {
  const { errno, code, message } = error
  if (typeof errno === 'number' && errno > 0) {
    if (CONFLICT.has(errno)) return 'ERR_STORE_CONFLICT'
    if (READ_ONLY.has(errno)) return 'ERR_STORE_READ_ONLY'
    if (CAPACITY.has(errno)) return 'ERR_STORE_CAPACITY'
    if (CONFIG.has(errno)) return 'ERR_STORE_CONFIG'
    if (SCHEMA.has(errno)) return 'ERR_STORE_SCHEMA'
    return BROKEN.has(errno) || NOT_IN_SERVICE.has(errno) ? 'ERR_STORE_CONNECTION' : 'ERR_STORE_FAILED'
  }
  if (CAPACITY_MESSAGES.has(String(message))) return 'ERR_STORE_CAPACITY'
  if (CLOSED_MESSAGES.has(String(message))) return 'ERR_STORE_CLOSED'
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') return 'ERR_STORE_CONFIG'
  return typeof code === 'string' ? 'ERR_STORE_CONNECTION' : 'ERR_STORE_FAILED'
}

const EXPLANATION: Record<Cause, string> = {
  ERR_STORE_TIMEOUT: 'The database did not answer in time',
  ERR_STORE_CONFLICT: 'Other transactions were in the way on every try',
  ERR_STORE_CONNECTION: 'The connection to the database failed',
  ERR_STORE_CAPACITY: 'The database has no connection to spare',
  ERR_STORE_READ_ONLY: 'The database is read-only at the moment',
  ERR_STORE_SCHEMA: 'A table of the rate limiter is missing or has another shape: run store.install()',
  ERR_STORE_CONFIG:
    'The database refused the user, the database name (is one in the address?) or a privilege, or the driver is not installed',
  ERR_STORE_CLOSED: 'The store is closed',
  ERR_STORE_FAILED: 'The database failed',
}

/** The driver's error as a `StoreError`: the driver's code in the message, its text only in the `cause`. */
export function storeErrorOf(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const driver = (error ?? {}) as DriverError
  const code = codeOf(driver)
  const detail = typeof driver.code === 'string' ? driver.code : driver.errno
  return new StoreError(code, `${EXPLANATION[code]}${detail === undefined ? '' : ` (${detail})`}`, {
    cause: error,
  })
}
