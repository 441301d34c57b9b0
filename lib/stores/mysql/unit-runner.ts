import { setTimeout as sleep } from 'node:timers/promises'
import { StoreError } from '../store-error.js'
import { AbandonedWork } from './abandoned-work.js'
import { remedyOf, storeErrorOf } from './classify-error.js'
import type { OnCommit } from './commit.js'
import { type Connection, takeConnection } from './connection.js'
import type { DriverPool } from './driver.js'
import type { Session } from './session.js'
import { ROLLBACK } from './statements.js'

/** A unit of work on one connection. It calls `onCommit` before it sends a COMMIT. */
export type Unit<T> = (connection: Connection, session: Session, onCommit: OnCommit) => Promise<T>

/**
 * Runs units: takes a connection, runs the whole unit, and again from its beginning when other transactions were
 * in the way (hazard 9), until the deadline. Whatever happens, the connection goes back without a transaction or
 * is destroyed, exactly once (hazards 8, 72, 80, 81).
 */
export class UnitRunner {
  readonly #pool: () => Promise<DriverPool>
  readonly #ownSessions: boolean
  /** Of the unit that ran last. */
  #session: Session | null = null
  readonly #running = new Set<Promise<unknown>>()
  readonly #abandoned = new AbandonedWork()
  /** How many units wait for a connection of the application's pool that others have. */
  #queued = 0

  constructor(pool: () => Promise<DriverPool>, ownSessions: boolean) {
    this.#pool = pool
    this.#ownSessions = ownSessions
  }

  /** Whether a unit waits for a connection because the application has them all: the server may be well. */
  get isCrowded(): boolean {
    return this.#queued > 0
  }

  /**
   * @throws StoreError with the reason; once `signal` has aborted, its own reason, or what the time went into, conflicts
   *   or the wait for a connection: then the server is not down.
   */
  async run<T>(unit: Unit<T>, signal: AbortSignal): Promise<T> {
    const running = this.#repeat(unit, signal)
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }

  /** Resolves when the units that are running have ended, each by its own deadline. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#running)
  }

  async #repeat<T>(unit: Unit<T>, signal: AbortSignal): Promise<T> {
    let reconnects = 0
    let conflict: StoreError | null = null
    for (let attempt = 1; ; attempt += 1) {
      let committing = false
      try {
        return await this.#attempt(unit, signal, () => {
          committing = true
        })
      } catch (error) {
        if (signal.aborted) throw conflict ?? (isCrowding(error) ? error : signal.reason)
        const remedy = remedyOf(error)
        if (remedy === 'conflict') {
          conflict = storeErrorOf(error)
          // A little longer each time, and never two processes in step.
          await sleep(Math.random() * 4 * Math.min(attempt, 8), undefined, { signal }).catch(() => {})
          if (signal.aborted) throw conflict
        } else if (remedy === 'isolation') {
          if (this.#session === null) throw storeErrorOf(error)
          this.#session.useRepeatableRead()
        } else if (remedy === 'broken' && !committing && reconnects < ((await this.#pool()).hosts ?? 1)) {
          // An idle connection that the server had closed shows only when it is used (hazard 77). COMMIT was not
          // sent, so nothing was written. With a new connection, once for each host there is.
          reconnects += 1
        } else {
          throw storeErrorOf(error)
        }
      }
    }
  }

  async #attempt<T>(unit: Unit<T>, signal: AbortSignal, onCommit: OnCommit): Promise<T> {
    const connection = await this.#take(await this.#pool(), signal)
    const giveUp = (): void => {
      if (connection.work !== null) this.#abandoned.add(connection.work)
      connection.destroy(signal.reason)
    }
    signal.addEventListener('abort', giveUp)
    try {
      await this.#abandoned.end(connection)
      const session = await connection.session(this.#ownSessions)
      this.#session = session
      const result = await unit(connection, session, onCommit)
      connection.release()
      return result
    } catch (error) {
      await this.#abandon(connection, error)
      throw error
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }

  async #take(pool: DriverPool, signal: AbortSignal): Promise<Connection> {
    if (this.#ownSessions || pool.off === undefined) return takeConnection(pool, signal)
    let isQueued = false
    const note = (): void => {
      isQueued = true
      this.#queued += 1
    }
    pool.on('enqueue', note)
    const taken = takeConnection(pool, signal)
    pool.off('enqueue', note)
    try {
      return await taken
    } catch (error) {
      throw isQueued && signal.aborted ? crowded(error) : error
    } finally {
      if (isQueued) this.#queued -= 1
    }
  }

  /** An error inside a unit leaves its transaction open more often than not: 1205 rolls back one statement only. */
  async #abandon(connection: Connection, error: unknown): Promise<void> {
    if (remedyOf(error) !== 'broken') {
      try {
        await connection.run([ROLLBACK])
        connection.release()
        return
      } catch {
        // Not even that: the connection's state is unknown.
      }
    }
    connection.destroy(error)
  }
}

const crowded = (cause: unknown): StoreError =>
  new StoreError('ERR_STORE_CAPACITY', 'Others kept all connections of the pool', { cause })

const isCrowding = (error: unknown): boolean =>
  error instanceof StoreError && error.code === 'ERR_STORE_CAPACITY'
