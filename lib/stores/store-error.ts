/**
 * Why a store could not answer. Stable: switch on it, never on the message. docs/errors.md says what to do about each.
 *
 * - `ERR_STORE_TIMEOUT`: no answer before the deadline.
 * - `ERR_STORE_CONFLICT`: deadlocks or lock waits on every try until the deadline.
 * - `ERR_STORE_CONNECTION`: the database cannot be reached, or the connection was lost.
 * - `ERR_STORE_CAPACITY`: no connection to be had (too many connections), too many hits waiting, or more of them than the
 *   store could decide in time.
 * - `ERR_STORE_READ_ONLY`: the server takes no writes at the moment (failover, replica).
 * - `ERR_STORE_SCHEMA`: a table or column is missing or of the wrong kind; the message has the statement that fixes it.
 * - `ERR_STORE_CONFIG`: wrong password, unknown database, missing privilege, missing driver.
 * - `ERR_STORE_DOWN`: it failed again and again, and is not asked until a check in the background passes; `cause` is the
 *   last failure.
 * - `ERR_STORE_CLOSED`: `close()` was called.
 * - `ERR_STORE_FAILED`: anything else the database said.
 */
export type StoreErrorCode =
  | 'ERR_STORE_TIMEOUT'
  | 'ERR_STORE_CONFLICT'
  | 'ERR_STORE_CONNECTION'
  | 'ERR_STORE_CAPACITY'
  | 'ERR_STORE_READ_ONLY'
  | 'ERR_STORE_SCHEMA'
  | 'ERR_STORE_CONFIG'
  | 'ERR_STORE_DOWN'
  | 'ERR_STORE_CLOSED'
  | 'ERR_STORE_FAILED'

/**
 * The one error class for what the outside world did to a store; misuse by the programmer is a `TypeError`.
 *
 * The message never holds SQL, parameters or a password. The driver's own error is the `cause`.
 *
 * @example
 * try {
 *   await limiter.reset('login:203.0.113.9')
 * } catch (error) {
 *   if (error instanceof StoreError && error.code === 'ERR_STORE_CONNECTION') console.error('database is down')
 * }
 */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: StoreErrorCode

  constructor(code: StoreErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}
