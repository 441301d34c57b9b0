import { setTimeout as sleep } from 'node:timers/promises'
import { withinDeadline } from '../before-abort.js'
import { KeptUsage, type UsageSlice, type UsageStore } from '../kept-usage.js'
import { checkBoolean, checkOptionNames, checkSweepSeconds, optionError } from '../option-error.js'
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
import { isBusy, sqliteError } from './classify-error.js'
import {
  blockKey,
  bytesOf,
  decideBatch,
  deleteEvents,
  type Open,
  peekCharges,
  probeWrite,
  refundHits,
} from './decide-batch.js'
import { inspectTables } from './inspect-tables.js'
import { checkSchema, installSchema } from './install.js'
import { openSqlite, type SqliteDatabase } from './open-sqlite.js'
import { SQLITE_OPTION_NAMES, type SqliteStoreOptions } from './options.js'
import { prepareStatements } from './statements.js'
import { storedKeys } from './stored-keys.js'
import { sweepAll } from './sweep-all.js'
import { agreeOnUsage, usageStatements } from './usage-statements.js'

/**
 * How long SQLite itself waits for another process's lock, in milliseconds. Its API is synchronous: the whole
 * process stands still meanwhile (hazard 101). Longer waits are ours, between tries, and block nothing.
 */
const BUSY_TIMEOUT_MS = 20
/** The longest wait outside of decisions, in milliseconds: install, reset, a chunk of a sweep. */
const MAINTENANCE_MS = 10_000

/**
 * Rate limiting in a SQLite file: nothing to set up, exact over all processes of one machine. Needs Node.js 22.13 or
 * later, or the package better-sqlite3.
 *
 * Constructing it does no I/O: the file is opened, and its tables created, before the first decision. It runs in WAL
 * mode with `synchronous = NORMAL`: a crash of the process loses nothing, a crash of the machine may lose the last
 * moments before it.
 *
 * @example
 * const store = new SqliteStore({ filename: 'limits.sqlite' })
 * app.use(rateLimit({ store, name: 'global', limit: 100, windowSeconds: 60 }))
 *
 * @throws TypeError for a wrong or unknown option.
 */
export class SqliteStore implements Store, UsageStore {
  readonly isInProcess = true
  readonly #filename: string
  readonly #install: boolean
  readonly #usage: KeptUsage
  readonly #clock: () => number
  readonly #sweeper: Sweeper
  #opening: Promise<Open> | null = null
  #open: Open | null = null
  #closed = false

  constructor(options: SqliteStoreOptions) {
    checkOptionNames('SqliteStore', options, SQLITE_OPTION_NAMES)
    const { filename, install = true, sweepSeconds = 60, clock = Date.now } = options
    if (typeof filename !== 'string' || filename === '')
      throw optionError('filename', 'a path or `:memory:`', filename)
    checkBoolean('install', install)
    checkSweepSeconds(sweepSeconds)
    if (typeof clock !== 'function') throw optionError('clock', 'a function', clock)
    this.#filename = filename
    this.#install = install
    this.#usage = new KeptUsage(options.keepUsageSeconds)
    this.#clock = clock
    this.#sweeper = new Sweeper(() => this.sweep(), sweepSeconds)
  }

  /**
   * Opens the file and creates the tables that are missing; safe from any number of processes at once.
   *
   * @throws StoreError `ERR_STORE_SCHEMA` names what is missing or different and the statement that fixes it.
   */
  async install(): Promise<void> {
    await withinDeadline(MAINTENANCE_MS, (signal) =>
      this.#transact((open) => installSchema(open.database), signal, false),
    )
  }

  async decide(batch: Batch, signal: AbortSignal): Promise<Verdict[]> {
    // The clock is read under the lock: BEGIN IMMEDIATE has come before.
    const verdicts = await this.#transact((open) => decideBatch(open, batch, this.#now()), signal)
    this.#sweeper.start()
    return verdicts
  }

  async peek(charges: readonly Charge[], signal: AbortSignal): Promise<Reading[]> {
    return this.#transact(({ statements }) => peekCharges(statements, charges, this.#now()), signal)
  }

  async refund(refunds: readonly Refund[], signal: AbortSignal): Promise<Refund[]> {
    return this.#transact(({ statements }) => refundHits(statements, refunds), signal)
  }

  async block({ key }: Charge, micros: number, signal: AbortSignal): Promise<void> {
    await this.#transact(({ statements }) => blockKey(statements, key, this.#now() + micros), signal)
  }

  storedKeys(prefix: string): AsyncGenerator<string[]> {
    return storedKeys((work) => this.#maintain(work), prefix)
  }

  async reset(keys: readonly string[]): Promise<void> {
    await this.#maintain((open) => {
      for (const key of keys) {
        deleteEvents(open, bytesOf(key), -1, Number.MAX_SAFE_INTEGER)
        open.statements.deleteKey.run(bytesOf(key))
      }
    })
  }

  async readUsage(key: string, from: number, to: number, micros: number): Promise<UsageSlice[]> {
    const range = [micros, bytesOf(key), from, to] as const
    return this.#maintain(({ database }) =>
      usageStatements(database).read.all(...range, ...range),
    ) as Promise<UsageSlice[]>
  }

  async probe(signal: AbortSignal): Promise<void> {
    await this.#transact(({ statements }) => probeWrite(statements), signal).catch((error: StoreError) => {
      // Tables dropped or the file replaced: the next probe opens it anew, and installs. Memory would be lost.
      if (error.code === 'ERR_STORE_FAILED' && this.#filename !== ':memory:') this.#closeFile()
      throw error
    })
  }

  async inspect(signal: AbortSignal): Promise<StoreInspection> {
    return this.#transact(({ statements }) => inspectTables(statements, this.#now()), signal, false)
  }

  /**
   * Removes abandoned keys with their events, in short transactions, by index. One process sweeps at a time: while
   * another does, this returns at once with `ran: false`. Runs by itself every `sweepSeconds`.
   */
  async sweep(onProgress?: SweepProgress): Promise<SweepResult> {
    return publishSweep(this, () =>
      sweepAll(
        (work) => this.#maintain(work),
        () => this.#now(),
        onProgress,
      ),
    )
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#sweeper.stop()
    await this.#opening?.catch(() => {})
    this.#closeFile()
  }

  #closeFile(): void {
    this.#open?.database.close()
    this.#open = null
  }

  /**
   * Runs work in one write transaction, and again while another process is in the way. Nothing is awaited inside,
   * so nothing of this process can come between.
   */
  async #transact<T>(work: (open: Open) => T, signal: AbortSignal, transaction = true): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      signal.throwIfAborted()
      try {
        const open = this.#open ?? (await this.#whenOpen())
        if (!transaction) return work(open)
        open.statements.begin.run()
        try {
          const result = work(open)
          open.statements.commit.run()
          return result
        } catch (error) {
          rollBack(open.database)
          throw error
        }
      } catch (error) {
        if (!isBusy(error)) throw sqliteError(error)
        await sleep(Math.random() * 4 * Math.min(attempt, 8), undefined, { signal }).catch(() => {})
        if (signal.aborted) throw sqliteError(error)
      }
    }
  }

  /** The same for work that no request waits for. */
  #maintain<T>(work: (open: Open) => T): Promise<T> {
    return withinDeadline(MAINTENANCE_MS, (signal) => this.#transact(work, signal))
  }

  /** One opening for all who wait, and a new one after a failure. */
  #whenOpen(): Promise<Open> {
    if (this.#closed) return Promise.reject(new StoreError('ERR_STORE_CLOSED', 'The store is closed'))
    this.#opening ??= this.#openFile().finally(() => {
      this.#opening = null
    })
    return this.#opening
  }

  async #openFile(): Promise<Open> {
    const database = await openSqlite(this.#filename)
    try {
      database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
      // Where WAL is not to be had (:memory:, network file systems) the pragma answers another mode. That mode is
      // as exact, only slower, since every transaction here takes its write lock before it reads (hazard 100).
      database.exec('PRAGMA journal_mode = WAL')
      database.exec('PRAGMA synchronous = NORMAL')
      if (this.#install) installSchema(database)
      else checkSchema(database, this.#usage.isAsked)
      agreeOnUsage(database, this.#usage)
      this.#open = { database, statements: prepareStatements(database), usage: this.#usage }
      return this.#open
    } catch (error) {
      database.close()
      throw error
    }
  }

  #now(): number {
    return Math.round(this.#clock() * 1000)
  }
}

function rollBack(database: SqliteDatabase): void {
  try {
    database.exec('ROLLBACK')
  } catch {
    // SQLite has rolled back by itself already, as it does for a full disk.
  }
}
