import { StoreError } from '../../stores/store-error.js'
import { EXIT } from './exit-code.js'
import { UsageError } from './usage-error.js'

/** A failure as it is told: in words, with what to do. */
export interface Failure {
  /** `ERR_USAGE`, or the code of a `StoreError`. */
  readonly code: string
  readonly message: string
  /** What to do about it; null when there is nothing to say. */
  readonly advice: string | null
  readonly exitCode: typeof EXIT.usage | typeof EXIT.failed
}

interface Cause {
  readonly code?: unknown
  readonly errno?: unknown
  readonly message?: unknown
}

const DRIVER = 'Install the driver where you run this: npm install mysql2'

/** By the code of the driver, of the network or of the server. */
const ADVICE: Readonly<Record<string, string>> = {
  ECONNREFUSED:
    'Nothing listens at that host and port. Is the server running, and is the port the right one (3306 by default)?',
  ENOTFOUND: 'No such host. Is its name spelled right, and known to this machine?',
  EAI_AGAIN: 'The name of the host could not be looked up. Is the name server of this machine reachable?',
  EHOSTUNREACH: 'There is no way to that host. Is it in another network, or behind a VPN?',
  ENOENT: 'The application makes it at its first decision. To make it now: express-sql-rate-limit install',
  ETIMEDOUT: 'The host did not answer. A firewall between here and there is the most common reason.',
  PROTOCOL_CONNECTION_LOST: 'The server closed the connection. Its log says why.',
  PROTOCOL_SEQUENCE_TIMEOUT: 'The server did not answer within 30 seconds. It is overloaded, or hangs.',
  ER_ACCESS_DENIED_ERROR:
    'The user or the password is wrong, or the user may not connect from this machine. In an address, a password with @ : / # or % in it is written with %40 %3A %2F %23 %25.',
  ER_DBACCESS_DENIED_ERROR:
    'The user may not use that database: GRANT SELECT, INSERT, UPDATE, DELETE on it, or correct its name.',
  ER_BAD_DB_ERROR: 'There is no such database: CREATE DATABASE it, or correct its name in the address.',
  ER_TABLEACCESS_DENIED_ERROR:
    'The user lacks a privilege. express-sql-rate-limit doctor says which, and how to grant it.',
  ER_NO_SUCH_TABLE: 'Create the tables: express-sql-rate-limit install',
  ER_BAD_FIELD_ERROR:
    'A table has another shape than it must have. express-sql-rate-limit doctor says what mends it.',
  ER_KEY_DOES_NOT_EXITS: 'An index is missing. express-sql-rate-limit doctor says which statement makes it.',
  ER_KEY_DOES_NOT_EXISTS: 'An index is missing. express-sql-rate-limit doctor says which statement makes it.',
  ER_CON_COUNT_ERROR:
    'The server has as many connections as it may have (max_connections). Close some, or raise the limit.',
  ER_TOO_MANY_USER_CONNECTIONS:
    'This user has as many connections as it may have (max_user_connections). The application holds them: use fewer processes or smaller pools.',
  ER_USER_LIMIT_REACHED:
    'This user has as many connections, or queries an hour, as it may have. The application holds them: use fewer processes or smaller pools.',
  ER_NOT_SUPPORTED_AUTH_MODE: 'The server and the driver know no common way to log in: update mysql2.',
  ER_PLUGIN_IS_NOT_LOADED:
    'The server does not know the way in which this user logs in: ALTER USER … IDENTIFIED WITH another.',
  ER_SECURE_TRANSPORT_REQUIRED:
    'The server takes encrypted connections only: add ?ssl={"rejectUnauthorized":true} to the address.',
  HANDSHAKE_SSL_ERROR:
    "The server's certificate is not trusted. Give its CA, or leave ssl out of the address.",
  ER_OPTION_PREVENTS_STATEMENT:
    'The server takes no writes: it is a replica, or was demoted. Use the primary.',
  ER_LOCK_WAIT_TIMEOUT: 'Somebody holds a lock on a table, by ALTER TABLE or LOCK TABLES. Try again later.',
  ERR_MODULE_NOT_FOUND: DRIVER,
  MODULE_NOT_FOUND: DRIVER,
  SQLITE_CANTOPEN: 'May this user read the file, and write into its folder?',
  SQLITE_READONLY: 'May this user write the file, and into its folder?',
  SQLITE_NOTADB: 'That file is no SQLite database.',
  SQLITE_BUSY: 'Another process holds the file locked. Try again later.',
}

const ADVICE_BY_STORE_CODE: Readonly<Record<string, string>> = {
  ERR_STORE_SCHEMA:
    'Create what is missing: express-sql-rate-limit install; or see: express-sql-rate-limit doctor',
  ERR_STORE_READ_ONLY: 'The server takes no writes: it is a replica, or was demoted. Use the primary.',
  ERR_STORE_TIMEOUT: 'The database is overloaded, or somebody holds a lock. Try again later.',
  ERR_STORE_CONFLICT: 'Other transactions were in the way. Try again.',
}

/** What SQLite says by its message alone. */
const BY_MESSAGE: readonly [RegExp, string, string][] = [
  [/no such (table|column|index)/, 'ERR_STORE_SCHEMA', ADVICE_BY_STORE_CODE.ERR_STORE_SCHEMA as string],
  [/file is not a database/, 'ERR_STORE_FAILED', ADVICE.SQLITE_NOTADB as string],
]

/** @param redact - takes passwords out of what the driver says */
export function explainFailure(error: unknown, redact: (text: string) => string): Failure {
  if (error instanceof UsageError) {
    return { code: error.code, message: redact(error.message), advice: null, exitCode: EXIT.usage }
  }
  const { message, code } =
    error instanceof StoreError
      ? error
      : { message: String((error as Cause | null)?.message ?? error), code: 'ERR_STORE_FAILED' }
  const cause = (error instanceof StoreError ? error.cause : null) as Cause | null | undefined
  const said = typeof cause?.message === 'string' && cause.message !== '' ? cause.message : null
  const known = BY_MESSAGE.find(([pattern]) => said !== null && pattern.test(said))
  // Our message says it already; a driver that is not installed says so in many lines.
  const isSaid = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ENOENT'].includes(String(cause?.code))
  return {
    code: known?.[1] ?? code,
    message: redact(said === null || isSaid ? message : `${message}: ${said}`),
    advice: known?.[2] ?? ADVICE[String(cause?.code)] ?? ADVICE_BY_STORE_CODE[code] ?? null,
    exitCode: EXIT.failed,
  }
}
