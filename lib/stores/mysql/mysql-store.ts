import { beforeAbort, withinDeadline } from '../before-abort.js'
import { KeptUsage, type UsageSlice, type UsageStore } from '../kept-usage.js'
import { checkBoolean, checkOptionNames, checkSweepSeconds } from '../option-error.js'
import { pagesOfKeys } from '../pages-of-keys.js'
import { publishSweep } from '../publish-sweep.js'
import type {
  Batch,
  Charge,
  Reading,
  Refund,
  Store,
  StoreInspection,
  SweepProgress,
  SweepResult,
  Verdict,
} from '../store.js'
import { StoreError } from '../store-error.js'
import { Sweeper } from '../sweeper.js'
import { checkSource } from './check-source.js'
import { blockUnit, refundUnit } from './correction-units.js'
import { decideUnit, peekUnit } from './decide-unit.js'
import { type DriverPool, driverPool } from './driver.js'
import { inspectUnit } from './inspect-unit.js'
import { KnownKeys } from './known-keys.js'
import { type OwnPool, openPool } from './open-pool.js'
import { MYSQL_OPTION_NAMES, type MysqlStoreOptions } from './options.js'
import { probeKeysUnit, probeUnit } from './probe-unit.js'
import { readySchema } from './ready-schema.js'
import { keysBetweenUnit, resetUnit } from './removal-units.js'
import { keyLiteral } from './statements.js'
import { sweepAll } from './sweep-all.js'
import { Turnstile } from './turnstile.js'
import { type Unit, UnitRunner } from './unit-runner.js'
import { readUsageUnit } from './usage-units.js'

/** The most that one unit of work outside of decisions may take, in milliseconds: install, reset, a chunk of a sweep. */
const MAINTENANCE_MS = 10_000
/** After so long, in milliseconds, such a unit hangs: on its connection, or on a lock of somebody else. */
const HANGS_MS = 500

/**
 * Rate limiting on MySQL 5.7+ or MariaDB 10.3+, exact over any number of processes. Needs the package `mysql2`.
 *
 * Constructing it does no I/O: it connects, and creates its tables, before the first decision, and again after
 * every failure until that works. Decisions go by the database's clock.
 *
 * @example
 * const store = new MysqlStore({ uri: process.env.DATABASE_URL })
 * app.use(rateLimit({ store, name: 'global', limit: 100, windowSeconds: 60 }))
 *
 * @throws TypeError for a wrong or unknown option, or a `pool` that is no pool of mysql2.
 */
export class MysqlStore implements Store, UsageStore {
  readonly #units: UnitRunner
  readonly #closePool: () => Promise<void>
  readonly #install: boolean
  readonly #usage: KeptUsage
  readonly #sweeper: Sweeper
  readonly #known = new KnownKeys()
  readonly #turnstile = new Turnstile()
  readonly #closing = new AbortController()
  /** The look at the schema that is under way. */
  #readying: Promise<void> | null = null
  #isReady = false

  constructor(options: MysqlStoreOptions) {
    checkOptionNames('MysqlStore', options, MYSQL_OPTION_NAMES)
    const { uri, connection, pool, install = true, multipleStatements = true, sweepSeconds = 60 } = options
    checkSource(options)
    checkBoolean('install', install)
    checkBoolean('multipleStatements', multipleStatements)
    checkSweepSeconds(sweepSeconds)

    this.#install = install
    this.#usage = new KeptUsage(options.keepUsageSeconds)
    this.#sweeper = new Sweeper(() => this.sweep(), sweepSeconds)
    if (pool !== undefined) {
      const theirs = Promise.resolve(driverPool(pool))
      this.#units = new UnitRunner(() => theirs, false)
      this.#closePool = async () => {}
      return
    }
    let opened: Promise<OwnPool> | null = null
    const open = async (): Promise<DriverPool> => {
      opened ??= openPool(uri ?? (connection as object), multipleStatements)
      return (await opened).pool
    }
    this.#units = new UnitRunner(open, true)
    // What could not be opened, such as without the driver, need not be closed.
    this.#closePool = async () => (await opened?.catch(() => null))?.close()
  }

  /** Whether it waits for a connection of your pool, as others have them all. */
  get isCrowded(): boolean {
    return this.#units.isCrowded
  }

  /**
   * Creates the tables that are missing and checks the others; safe from any number of processes at once.
   *
   * @throws StoreError `ERR_STORE_SCHEMA` names what is missing or different and the statement that fixes it.
   */
  async install(): Promise<void> {
    await this.#maintain((connection, session) => readySchema(connection, session, true, this.#usage))
    this.#isReady = true
  }

  async decide(batch: Batch, signal: AbortSignal): Promise<Verdict[]> {
    if (!this.#isReady) await this.#whenReady(signal)
    this.#closing.signal.throwIfAborted()
    this.#sweeper.start()
    return this.#first(
      (connection, session, onCommit) =>
        decideUnit(connection, session, this.#known, batch, onCommit, this.#usage),
      signal,
    )
  }

  async probe(signal: AbortSignal, keys?: readonly string[]): Promise<void> {
    this.#closing.signal.throwIfAborted()
    if (keys !== undefined) {
      // One that hangs says nothing of these keys, and may hang for long.
      if (this.#turnstile.heldFor > HANGS_MS)
        throw new StoreError('ERR_STORE_CAPACITY', 'The second connection is not free')
      return this.#beside((connection, session) => probeKeysUnit(connection, session, keys), signal)
    }
    // Its own look at the schema: the one that others wait for may hang on a connection that is dead.
    if (!this.#isReady) await this.#first(this.#schemaUnit, signal)
    this.#isReady = true
    await this.#first(probeUnit, signal)
  }

  async peek(charges: readonly Charge[], signal: AbortSignal): Promise<Reading[]> {
    await this.#whenReady(signal)
    return this.#beside((connection, session) => peekUnit(connection, session, charges), signal)
  }

  async refund(refunds: readonly Refund[], signal: AbortSignal): Promise<Refund[]> {
    await this.#whenReady(signal)
    const left = await this.#beside(
      (connection, session, onCommit) => refundUnit(connection, session, onCommit, refunds),
      signal,
    )
    for (const { key } of refunds) this.#known.get(key)?.unsettle()
    return left
  }

  async block(charge: Charge, micros: number, signal: AbortSignal): Promise<void> {
    await this.#whenReady(signal)
    await this.#beside(
      (connection, session, onCommit) => blockUnit(connection, session, onCommit, charge, micros),
      signal,
    )
    this.#known.get(charge.key)?.unsettle()
  }

  async *storedKeys(prefix: string): AsyncGenerator<string[]> {
    await this.#whenReady(this.#closing.signal)
    yield* pagesOfKeys(prefix, (after, before, most) =>
      this.#maintain((connection) => keysBetweenUnit(connection, after, before, most)),
    )
  }

  async reset(keys: readonly string[]): Promise<void> {
    await this.#whenReady(this.#closing.signal)
    for (const key of keys) {
      let at: number | null = null
      for (let finished = false; !finished; ) {
        const progress = await this.#maintain((connection, session, onCommit) =>
          resetUnit(connection, session, onCommit, this.#usage, keyLiteral(key), at),
        )
        at = progress.at
        finished = progress.finished
      }
      this.#known.forget(key)
    }
  }

  async inspect(signal: AbortSignal): Promise<StoreInspection> {
    await this.#whenReady(signal)
    return this.#beside(inspectUnit, signal)
  }

  /**
   * Removes abandoned keys with their events, in short transactions, by index. One process sweeps at a time: while
   * another does, this returns at once with `ran: false`. Runs by itself every `sweepSeconds`.
   */
  async sweep(onProgress?: SweepProgress): Promise<SweepResult> {
    await this.#whenReady(this.#closing.signal)
    return publishSweep(this, () => sweepAll((unit) => this.#maintain(unit), this.#usage, onProgress))
  }

  async readUsage(key: string, from: number, to: number, micros: number): Promise<UsageSlice[]> {
    await this.#whenReady(this.#closing.signal)
    return this.#maintain((connection, session) =>
      readUsageUnit(connection, session, { key, from, to, micros }),
    )
  }

  /** Lets decisions that are under way finish, each by its deadline; refuses what comes after. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#sweeper.stop()
    this.#closing.abort(new StoreError('ERR_STORE_CLOSED', 'The store is closed'))
    await this.#units.ended()
    await this.#closePool()
  }

  readonly #schemaUnit: Unit<void> = (connection, session) =>
    readySchema(connection, session, this.#install, this.#usage)

  /** Resolves when the schema is there: one look for all who wait, and a new one after a failure. */
  async #whenReady(signal: AbortSignal): Promise<void> {
    this.#closing.signal.throwIfAborted()
    if (this.#isReady) return
    this.#readying ??= this.#maintain(this.#schemaUnit)
      .then(() => {
        this.#isReady = true
      })
      .finally(() => {
        this.#readying = null
      })
    await beforeAbort(this.#readying, signal)
  }

  /** Runs a unit that waits for no other of this process, but for a connection. */
  async #first<T>(unit: Unit<T>, signal: AbortSignal): Promise<T> {
    try {
      return await this.#units.run(unit, signal)
    } catch (error) {
      // Somebody dropped or changed a table while we ran: look again before the next batch.
      if (error instanceof StoreError && error.code === 'ERR_STORE_SCHEMA') this.#isReady = false
      throw error
    }
  }

  #maintain<T>(unit: Unit<T>): Promise<T> {
    return withinDeadline(MAINTENANCE_MS, (signal) => this.#beside(unit, signal), this.#closing.signal)
  }

  /** Runs a unit that is no decision: one at a time. */
  #beside<T>(unit: Unit<T>, signal: AbortSignal): Promise<T> {
    return this.#turnstile.pass(() => this.#units.run(unit, signal), signal)
  }
}
