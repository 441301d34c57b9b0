import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAbort } from '../before-abort.js'
import { StoreError } from '../store-error.js'
import { AbandonedWork } from './abandoned-work.js'
import { hasNoneToSpare, isRefusal, remedyOf, storeErrorOf } from './classify-error.js'
import type { OnCommit } from './commit.js'
import { type Connection, takeConnection } from './connection.js'
import type { DriverPool } from './driver.js'
import { HeldConnections } from './held-connections.js'
import type { Session } from './session.js'
import { ROLLBACK } from './statements.js'

/** A unit of work on one connection. It calls `onCommit` before it sends a COMMIT. */
export type Unit<T> = (connection: Connection, session: Session, onCommit: OnCommit) => Promise<T>

/** How far one try of a unit has come. */
interface Progress {
  /** Whether its connection had served before. */
  isUsed: boolean
  /** Whether COMMIT may have been sent. */
  isCommitting: boolean
}

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
  readonly #held = new HeldConnections()
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
      const progress: Progress = { isUsed: false, isCommitting: false }
      try {
        return await this.#attempt(unit, signal, progress)
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
        } else if (
          remedy === 'broken' &&
          (!progress.isCommitting || isRefusal(error)) &&
          (progress.isUsed || reconnects < ((await this.#pool()).hosts ?? 1))
        ) {
          // COMMIT was not sent, or refused, so nothing was written. That the server had closed an idle connection shows
          // only when it is used (hazard 77), and all that the pool has may be closed. With new ones, once for each host
          // there is.
          if (!progress.isUsed) reconnects += 1
        } else {
          throw storeErrorOf(error)
        }
      }
    }
  }

  async #attempt<T>(unit: Unit<T>, signal: AbortSignal, progress: Progress): Promise<T> {
    const connection = await this.#takeSpared(await this.#pool(), signal)
    this.#held.took()
    progress.isUsed = connection.isUsed
    const giveUp = (): void => this.#destroy(connection, signal.reason)
    signal.addEventListener('abort', giveUp)
    try {
      const session = await connection.session(this.#ownSessions)
      await this.#abandoned.end(connection, session)
      this.#session = session
      const result = await unit(connection, session, (isSent = true) => {
        progress.isCommitting = isSent
      })
      connection.release()
      return result
    } catch (error) {
      await this.#abandon(connection, error)
      throw error
    } finally {
      signal.removeEventListener('abort', giveUp)
      this.#held.left()
    }
  }

  /** Where the server refuses one more connection, waits for one of this store's own. */
  async #takeSpared(pool: DriverPool, signal: AbortSignal): Promise<Connection> {
    for (;;) {
      const { timesLeft } = this.#held
      try {
        return await this.#take(pool, signal)
      } catch (error) {
        const left = hasNoneToSpare(error) ? this.#held.leftSince(timesLeft) : null
        if (left === null) throw error
        await beforeAbort(left, signal).catch(() => {})
        // Classified, so that `run` tells what the time went into.
        if (signal.aborted) throw storeErrorOf(error)
      }
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
    this.#destroy(connection, error)
  }

  #destroy(connection: Connection, reason: unknown): void {
    const { work } = connection
    if (connection.destroy(reason) && work !== null) this.#abandoned.add(work)
  }
}

const crowded = (cause: unknown): StoreError =>
  new StoreError('ERR_STORE_CAPACITY', 'Others kept all connections of the pool', { cause })

const isCrowding = (error: unknown): boolean =>
  error instanceof StoreError && error.code === 'ERR_STORE_CAPACITY'
