import { StoreError } from '../store-error.js'
import { isUnfit } from './classify-error.js'
import { type DriverConnection, type DriverPool, type DriverQuery, queryOptions } from './driver.js'
import { Session } from './session.js'

/** Rows as arrays of column values, in the order of the statement's select list. */
export type Rows = readonly (readonly unknown[])[]

/** What one statement did. */
export interface Result {
  readonly rows: Rows
  /** Rows matched by a write; mysql2 asks the server for found, not for changed rows. */
  readonly affectedRows: number
  /** What LAST_INSERT_ID was set to, else 0. */
  readonly insertId: number
}

/** What was sent last on a connection, to which thread of which server. */
export interface Work {
  readonly threadId: number
  readonly sql: string
  /** On the monotonic clock, in milliseconds. */
  readonly sentAt: number
  /** As in `Session`. */
  readonly server: string | null
}

/**
 * Connections that have a listener for 'error': without one, a server that goes away while a connection is checked
 * out would end the process (hazard 79). The error itself reaches the query's callback.
 */
const guarded = new WeakSet<DriverConnection>()

const sessions = new WeakMap<DriverConnection, Session>()

/**
 * A connection for the length of one unit. Once destroyed it answers nothing more: what is in flight rejects, and
 * whatever the server still sends is dropped with the socket.
 */
export class Connection {
  readonly #driver: DriverConnection
  readonly #pool: DriverPool
  readonly #options: Omit<DriverQuery, 'sql'>
  readonly #isUsed: boolean
  #multipleStatements: boolean
  #state: 'open' | 'released' | 'destroyed' = 'open'
  #rejectPending: ((error: unknown) => void) | null = null
  #sent: Pick<Work, 'sql' | 'sentAt'> | null = null

  constructor(driver: DriverConnection, pool: DriverPool) {
    this.#driver = driver
    this.#pool = pool
    if (!guarded.has(driver)) {
      guarded.add(driver)
      driver.on('error', () => {})
    }
    this.#isUsed = sessions.has(driver)
    this.#multipleStatements = driver.config?.multipleStatements === true
    this.#options = queryOptions(driver)
  }

  /** Whether several statements travel in one packet. */
  get multipleStatements(): boolean {
    return this.#multipleStatements
  }

  /** Whether it has served before, so that the server may have closed it since. */
  get isUsed(): boolean {
    return this.#isUsed
  }

  /** The driver's number of the thread at the server's end. */
  get threadId(): number | null {
    return this.#driver.threadId ?? null
  }

  /** What is known of the server's end, asked once for as long as the driver's connection lives. */
  async session(ownSessions: boolean): Promise<Session> {
    let session = sessions.get(this.#driver)
    if (session === undefined) {
      session = await Session.of(this, ownSessions)
      sessions.set(this.#driver, session)
    }
    if (session.statementsTravelAlone) this.#multipleStatements = false
    return session
  }

  /** Sends the statements in one packet where the connection allows it, else one by one, and gives the result of each. */
  async run(statements: readonly string[]): Promise<Result[]> {
    if (this.#multipleStatements && statements.length > 1) {
      const results = await this.#query(statements.join(';\n'))
      return (results as unknown[]).map(resultOf)
    }
    const results: Result[] = []
    for (const statement of statements) results.push(resultOf(await this.#query(statement)))
    return results
  }

  #query(sql: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#state !== 'open') {
        reject(new StoreError('ERR_STORE_CONNECTION', 'The connection was given up'))
        return
      }
      this.#rejectPending = reject
      this.#sent = { sql, sentAt: performance.now() }
      this.#driver.query({ ...this.#options, sql }, (error, results) => {
        this.#rejectPending = null
        if (error) reject(error)
        else resolve(results)
      })
    })
  }

  /** What the server is at, or was at last: null when nothing was sent in this unit. */
  get work(): Work | null {
    const { threadId } = this
    const server = sessions.get(this.#driver)?.server ?? null
    return this.#sent === null || threadId === null ? null : { ...this.#sent, threadId, server }
  }

  /** Gives the connection back to its pool. It must have no open transaction. */
  release(): void {
    if (this.#state !== 'open') return
    this.#state = 'released'
    this.#pool.report?.(this.#driver, 'served')
    this.#driver.release()
  }

  /**
   * Closes the socket: for a connection whose state is in doubt. The server rolls its transaction back once it sees
   * that. Tells whether it was still open.
   */
  destroy(reason: unknown): boolean {
    if (this.#state !== 'open') return false
    this.#state = 'destroyed'
    if (reason instanceof StoreError && reason.code === 'ERR_STORE_TIMEOUT')
      this.#pool.report?.(this.#driver, 'late')
    else if (isUnfit(reason)) this.#pool.report?.(this.#driver, 'unfit')
    this.#driver.destroy()
    // Else it stays open until the server closes it: in a long outage of one that hangs, one for each try.
    this.#driver.stream?.destroy()
    this.#rejectPending?.(reason)
    return true
  }
}

/** A statement that returns no rows answers with a header object. */
function resultOf(result: unknown): Result {
  if (Array.isArray(result)) return { rows: result, affectedRows: 0, insertId: 0 }
  const { affectedRows, insertId } = result as { affectedRows: number; insertId: number }
  return { rows: [], affectedRows, insertId }
}

/**
 * Takes a connection from the pool, or rejects as soon as `signal` aborts: mysql2 itself waits without bound
 * (hazard 71). A connection that arrives too late goes straight back.
 */
export function takeConnection(pool: DriverPool, signal: AbortSignal): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let waiting = true
    const settle = (action: () => void): void => {
      waiting = false
      signal.removeEventListener('abort', giveUp)
      action()
    }
    const giveUp = (): void => settle(() => reject(signal.reason))
    if (signal.aborted) {
      reject(signal.reason)
      return
    }
    signal.addEventListener('abort', giveUp)
    pool.getConnection((error, driver) => {
      if (!waiting) driver?.release()
      else if (error) settle(() => reject(error))
      else settle(() => resolve(new Connection(driver, pool)))
    })
  })
}

const WHOLE_NUMBER = /^-?\d+$/

/**
 * A whole number from a result column. Pools can be told to deliver big integers as strings or every column as
 * bytes (hazard 83), and `undefined >= limit` would admit everyone: so anything but a safe integer is an error.
 */
export function integer(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  const text = String(value)
  const number = WHOLE_NUMBER.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(number)) {
    throw new StoreError(
      'ERR_STORE_FAILED',
      `Expected a whole number from the database, got a ${typeof value}`,
    )
  }
  return number
}
