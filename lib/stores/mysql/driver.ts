/**
 * The parts of mysql2 that we call, so that the package's types need no driver. Both `mysql2` and `mysql2/promise`
 * hand out the same core connections behind them.
 */
export interface DriverConnection {
  query(options: DriverQuery, callback: (error: unknown, results: unknown) => void): unknown
  release(): void
  destroy(): void
  on(event: 'error', listener: (error: unknown) => void): unknown
  readonly threadId?: number
  readonly config?: DriverConfig
  /** The socket. `destroy()` of the driver only says goodbye on it, and waits for the server to close it. */
  readonly stream?: DriverSocket
}

/** The part of `net.Socket` that we call. */
export interface DriverSocket {
  destroy(): unknown
  /** Destroys it when all that was written has gone out. */
  destroySoon(): unknown
  once(event: 'close', listener: () => void): unknown
}

/** What a connection was made with. */
export interface DriverConfig {
  readonly multipleStatements?: boolean
  readonly typeCast?: unknown
}

/** A callback pool of mysql2. */
export interface DriverPool {
  getConnection(callback: (error: unknown, connection: DriverConnection) => void): void
  end(callback: (error?: unknown) => void): void
  /** `enqueue`: while `getConnection` runs, when others have all connections. */
  on(event: 'connection' | 'enqueue', listener: (connection: DriverConnection) => void): unknown
  off?(event: 'enqueue', listener: (connection: DriverConnection) => void): unknown
  /** How many hosts it may connect to, when there are several. */
  readonly hosts?: number
  /** Is told what became of a unit, when there are several hosts: done, too late, or on a server without writes. */
  report?(connection: DriverConnection, outcome: 'served' | 'late' | 'unfit'): void
}

/** What we ask of every query, whatever the pool's own options say (hazard 83: `rowsAsArray`, `nestTables`, `typeCast`, …). */
export interface DriverQuery {
  readonly sql: string
  readonly rowsAsArray: true
  readonly nestTables: false
  readonly typeCast?: (field: unknown, next: () => unknown) => unknown
}

const PLAIN = { rowsAsArray: true, nestTables: false } as const

/** A pool's own `typeCast` can only be replaced by a function, which costs the driver a call for every value. */
const CAST = { ...PLAIN, typeCast: (_field: unknown, next: () => unknown): unknown => next() } as const

/** The options of every query on a connection. */
export const queryOptions = ({ config }: DriverConnection): Omit<DriverQuery, 'sql'> =>
  config?.typeCast === true ? PLAIN : CAST

const isPool = (value: unknown): value is DriverPool & { promise: unknown } =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as DriverPool).getConnection === 'function' &&
  typeof (value as { promise?: unknown }).promise === 'function'

/**
 * The callback pool behind what the user passed: a pool of `mysql2` or of `mysql2/promise`. Decided by what it can
 * do, never by its constructor's name, which bundlers change.
 *
 * @throws TypeError for anything else, such as a single connection, a Sequelize instance or a Knex instance.
 */
export function driverPool(pool: unknown): DriverPool {
  if (isPool(pool)) return pool
  const inner = (pool as { pool?: unknown } | null | undefined)?.pool
  if (isPool(inner)) return inner
  const got = typeof pool === 'object' && pool !== null ? pool.constructor?.name : String(pool)
  throw new TypeError(
    `Expected \`pool\` to be a pool made by createPool() of mysql2 or mysql2/promise, got ${got} (${typeof pool})`,
  )
}
