import { StoreError, type StoreErrorCode } from '../store-error.js'

/** better-sqlite3 names the result code in `code`; node:sqlite gives its number in `errcode`. */
interface SqliteDriverError {
  readonly code?: unknown
  readonly errcode?: unknown
}

/** Primary result codes of SQLite, by their names in better-sqlite3 and their numbers in node:sqlite. */
const RESULT_CODES = [
  'SQLITE_BUSY',
  'SQLITE_LOCKED',
  'SQLITE_READONLY',
  'SQLITE_FULL',
  'SQLITE_CANTOPEN',
] as const
type ResultCode = (typeof RESULT_CODES)[number]
const RESULT_NUMBERS: Record<number, ResultCode> = {
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  8: 'SQLITE_READONLY',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
}

const STORE_CODES: Record<ResultCode, StoreErrorCode> = {
  SQLITE_BUSY: 'ERR_STORE_CONFLICT',
  SQLITE_LOCKED: 'ERR_STORE_CONFLICT',
  SQLITE_READONLY: 'ERR_STORE_READ_ONLY',
  SQLITE_FULL: 'ERR_STORE_CAPACITY',
  SQLITE_CANTOPEN: 'ERR_STORE_CONNECTION',
}

function resultCodeOf(error: unknown): ResultCode | undefined {
  const { code, errcode } = (error ?? {}) as SqliteDriverError
  // Extended codes, such as SQLITE_BUSY_SNAPSHOT, carry the primary one in their name and in their low byte.
  if (typeof errcode === 'number') return RESULT_NUMBERS[errcode & 0xff]
  return RESULT_CODES.find((name) => String(code).startsWith(name))
}

/** Whether another process was in the way, so that the whole transaction may be tried again. */
export function isBusy(error: unknown): boolean {
  const code = resultCodeOf(error)
  return code === 'SQLITE_BUSY' || code === 'SQLITE_LOCKED'
}

/** The driver's error as a `StoreError`, its own text only in the `cause`. */
export function sqliteError(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const result = resultCodeOf(error)
  const code = result === undefined ? 'ERR_STORE_FAILED' : STORE_CODES[result]
  return new StoreError(code, `SQLite failed${result === undefined ? '' : ` (${result})`}`, { cause: error })
}
