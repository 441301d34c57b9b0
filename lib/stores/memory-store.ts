import { type Account, EMPTY_HEAD, instantOf, pruneIsDue, type WindowStart } from './account.js'
import { type Demand, demandsOf, demandsOfPeek } from './demand.js'
import { byAlgorithm, eventTakes, refundsByKey } from './event-takes.js'
import { type MemoryEvent, type MemoryKey, MemoryKeys } from './memory-keys.js'
import { checkOptionNames, checkSweepSeconds, optionError } from './option-error.js'
import { publishSweep } from './publish-sweep.js'
import { refundedFixedHead, refundedHead } from './refunded-head.js'
import { countedSince } from './running-total.js'
import { settle, settlePeek } from './settle.js'
import type { KeyWrite, RetryLookup } from './settling-key.js'
import type { Batch, Charge, Reading, Refund, Store, StoreInspection, SweepResult, Verdict } from './store.js'
import { StoreError } from './store-error.js'
import { Sweeper } from './sweeper.js'

export interface MemoryStoreOptions {
  /** Seconds between sweeps of abandoned keys, 1 to 86,400, or false to call `sweep()` yourself. Default 60. */
  readonly sweepSeconds?: number | false | undefined
  /**
   * The most keys and events that it holds, together, 100 to 100,000,000. When there are more, keys are forgotten: those
   * unused for longest, and last those that deny. Events of a key that has more than a twenty-fifth of them are joined,
   * the older of two to the younger, so that they count a little too long. Default: no bound.
   */
  readonly maxEntries?: number | undefined
  /** The time in milliseconds since the epoch, for tests that move it. Default `Date.now`. */
  readonly clock?: (() => number) | undefined
}

/**
 * Counts in the memory of this process: exact within it, unknown to others, gone when it ends. For tests and
 * development, and for services of one process that need no database.
 *
 * @example
 * app.use(rateLimit({ store: new MemoryStore(), name: 'global', limit: 100, windowSeconds: 60 }))
 *
 * @throws TypeError for a wrong or unknown option.
 */
export class MemoryStore implements Store {
  readonly isInProcess = true
  readonly #keys: MemoryKeys
  readonly #clock: () => number
  readonly #sweeper: Sweeper
  #closed = false
  #sweptAt: number | null = null

  constructor(options: MemoryStoreOptions = {}) {
    checkOptionNames('MemoryStore', options, ['sweepSeconds', 'maxEntries', 'clock'])
    const { sweepSeconds = 60, maxEntries = Number.POSITIVE_INFINITY, clock = Date.now } = options
    checkSweepSeconds(sweepSeconds)
    if (typeof clock !== 'function') throw optionError('clock', 'a function', clock)
    const isCount = Number.isInteger(maxEntries) && maxEntries >= 100 && maxEntries <= 100_000_000
    if (options.maxEntries !== undefined && !isCount)
      throw optionError('maxEntries', 'a whole number from 100 to 100000000', maxEntries)
    this.#keys = new MemoryKeys(maxEntries)
    this.#clock = clock
    this.#sweeper = new Sweeper(() => this.sweep(), sweepSeconds)
  }

  /** Nothing to create. */
  async install(): Promise<void> {}

  async decide(batch: Batch, signal: AbortSignal): Promise<Verdict[]> {
    signal.throwIfAborted()
    this.#checkOpen()
    this.#sweeper.start()
    const demands = demandsOf(batch)
    const { verdicts, writes, lookups } = settle(batch, demands, this.#read(demands.values()))
    for (const write of writes) this.#write(write)
    for (const lookup of lookups) this.#resolve(lookup)
    this.#keys.evict(batch, verdicts, this.#now())
    return verdicts
  }

  async peek(charges: readonly Charge[], signal: AbortSignal): Promise<Reading[]> {
    signal.throwIfAborted()
    this.#checkOpen()
    const { readings, lookups } = settlePeek(charges, this.#read(demandsOfPeek(charges).values()))
    for (const lookup of lookups) this.#resolve(lookup)
    return readings
  }

  /** Leaves none: a later event is written anew in nanoseconds. */
  async refund(refunds: readonly Refund[], signal: AbortSignal): Promise<Refund[]> {
    signal.throwIfAborted()
    this.#checkOpen()
    for (const [key, ofKey] of refundsByKey(refunds)) {
      const entry = this.#keys.get(key)
      if (entry !== undefined) this.#refund(entry, ofKey)
    }
    return []
  }

  async block({ key }: Charge, micros: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    this.#checkOpen()
    const { head = EMPTY_HEAD, expiresAt = 0, events = [] } = this.#keys.get(key) ?? {}
    const blocked = Math.max(head.blocked, this.#now() + micros)
    this.#keys.set(key, {
      head: { ...head, blocked },
      expiresAt: Math.max(expiresAt, blocked),
      events,
      denies: true,
    })
  }

  async *storedKeys(prefix: string): AsyncGenerator<string[]> {
    this.#checkOpen()
    yield this.#keys.startingWith(prefix)
  }

  async reset(keys: readonly string[]): Promise<void> {
    this.#checkOpen()
    for (const key of keys) this.#keys.delete(key)
  }

  async probe(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    this.#checkOpen()
  }

  async inspect(signal: AbortSignal): Promise<StoreInspection> {
    signal.throwIfAborted()
    this.#checkOpen()
    return { ...this.size, precision: 'exact', bytes: null, sweptAt: this.#sweptAt, connections: null }
  }

  async sweep(): Promise<SweepResult> {
    this.#checkOpen()
    return publishSweep(this, async () => {
      const now = this.#now()
      this.#sweptAt = Math.floor(now / 1000)
      return this.#keys.sweep(now)
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#sweeper.stop()
    this.#keys.clear()
  }

  /** How much it holds at the moment, expired or not. */
  get size(): { keys: number; events: number } {
    return this.#keys.size
  }

  #checkOpen(): void {
    if (this.#closed) throw new StoreError('ERR_STORE_CLOSED', 'The store is closed')
  }

  #now(): number {
    return Math.round(this.#clock() * 1000)
  }

  #read(demands: Iterable<Demand>): Map<string, Account> {
    const now = this.#now()
    const accounts = new Map<string, Account>()
    for (const { key, policies, span } of demands) {
      const { head = EMPTY_HEAD, events = [] } = this.#keys.get(key) ?? {}
      const at = instantOf(head, now)
      const windows = new Map<number, WindowStart>()
      for (const { windowMicros } of policies)
        windows.set(windowMicros, startOfWindow(events, at - windowMicros))
      const keep = Math.max(head.span, span)
      accounts.set(key, { head, now, windows, pruneTo: pruneIsDue(head, at, keep) ? at - keep : 0 })
    }
    return accounts
  }

  #refund(entry: MemoryKey, refunds: readonly Refund[]): void {
    const { events } = entry
    const indexOf = (at: number): number => firstAfter(events, ({ ts }) => ts >= at)
    const hitsAt = (at: number): number => {
      const event = events[indexOf(at)]
      return event?.ts === at ? event.hits : 0
    }
    const takeFrom = (index: number, cost: number): void => {
      const event = events[index] as MemoryEvent
      event.hits -= cost
      if (event.hits === 0) this.#keys.removeEvents(entry, index, 1)
    }

    const [sliding, fixed] = byAlgorithm(refunds)
    for (const { policy, cost, at } of fixed) {
      entry.head = refundedFixedHead(entry.head, policy, cost, at)
      if (policy.audit && hitsAt(at) >= cost) takeFrom(indexOf(at), cost)
    }
    const takes = eventTakes(sliding, hitsAt)
    entry.head = refundedHead(entry.head, takes)
    for (const { at, cost, sum, before } of takes) {
      for (const event of events.slice(indexOf(at), indexOf(before))) event.total -= sum
      takeFrom(indexOf(at), cost)
    }
  }

  #write({ key, head, expiresAt, event, prune }: KeyWrite): void {
    let entry = this.#keys.get(key)
    if (entry === undefined) {
      entry = { head, expiresAt, events: [], denies: false }
      this.#keys.set(key, entry)
    }
    entry.head = head
    entry.expiresAt = expiresAt
    if (prune) {
      const pruned = firstAfter(entry.events, (past) => past.ts > prune.upTo)
      this.#keys.removeEvents(entry, 0, pruned)
    }
    if (event) this.#keys.addEvent(entry, { ...event })
  }

  #resolve({ key, after, base, excess, resolve }: RetryLookup): void {
    const events = this.#keys.get(key)?.events ?? []
    const isReached = (past: MemoryEvent): boolean =>
      past.ts > after && countedSince(past.total, base) >= excess
    const event = events[firstAfter(events, isReached)]
    if (event) resolve(event.ts)
  }
}

const startOfWindow = (events: readonly MemoryEvent[], cutoff: number): WindowStart => {
  const event = events[firstAfter(events, (past) => past.ts > cutoff)]
  return event ? { first: event.ts, base: event.total - event.hits } : { first: 0, base: 0 }
}

/** The first index at which a condition holds that, once true, stays true: time only grows, and what was counted since. */
function firstAfter(events: readonly MemoryEvent[], holds: (event: MemoryEvent) => boolean): number {
  let low = 0
  let high = events.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(events[middle] as MemoryEvent)) high = middle
    else low = middle + 1
  }
  return low
}
