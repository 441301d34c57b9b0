import { LRUCache } from 'lru-cache'
import { withinDeadline } from '../stores/before-abort.js'
import type { Charge, Policy, Reading, Refund, Store } from '../stores/store.js'
import { Batcher } from './batcher.js'
import type { StoreHealth } from './breaker.js'
import { DenyCache } from './deny-cache.js'
import { LeaseBook } from './lease-book.js'
import { LocalLimiter } from './local-limiter.js'
import { RefundQueue } from './refund-queue.js'
import { rejectNextTurn } from './reject-next-turn.js'

/** How long an attempt that was refused from memory may stay uncounted when no batch takes it along. */
const FLUSH_MS = 1000
/** The most names, and the most keys changed of late, that are remembered. */
const ENTRIES = 10_000

/**
 * What all limiters of one store share: the batcher, so that their hits go together, and the view of all their deny
 * caches and leases, so that a reset or a refund by one limiter is seen by the others.
 */
export class Lane {
  readonly batcher: Batcher
  readonly #store: Store
  readonly #refunds: RefundQueue
  #local: LocalLimiter | null = null
  readonly #caches = new Set<DenyCache>()
  readonly #books = new Set<LeaseBook>()
  /** How long events are kept, by the name of their policies. */
  readonly #kept = new LRUCache<string, { micros: number }>({ max: ENTRIES })
  /** Which reset was a key's last. */
  readonly #resets = new LRUCache<string, number>({ max: ENTRIES })
  #resetCount = 0
  /** When keys were last reset, refunded or blocked, on the monotonic clock. */
  readonly #changed = new LRUCache<string, number>({ max: ENTRIES })
  #flushTimer: NodeJS.Timeout | null = null

  private constructor(store: Store) {
    this.#store = store
    this.batcher = new Batcher(store, (most) => {
      const refusals = []
      for (const cache of this.#caches) refusals.push(...cache.takeRefusals(most - refusals.length))
      return refusals
    })
    this.#refunds = new RefundQueue(store, this.batcher.breaker)
  }

  static readonly #lanes = new WeakMap<Store, Lane>()

  /** The one lane of this store in this process. */
  static of(store: Store): Lane {
    let lane = Lane.#lanes.get(store)
    if (lane === undefined) {
      lane = new Lane(store)
      Lane.#lanes.set(store, lane)
    }
    return lane
  }

  /**
   * The policy as its store shall see it. Sliding policies of one name count the same events where their keys are
   * equal, so each keeps events for as long as the longest of them needs, also before that one has met the key.
   */
  register(policy: Policy): Policy {
    if (policy.algorithm === 'fixed-window') return policy
    const kept = this.#kept.get(policy.name) ?? { micros: 0 }
    kept.micros = Math.max(kept.micros, policy.keepMicros)
    this.#kept.set(policy.name, kept)
    return {
      ...policy,
      get keepMicros() {
        return kept.micros
      },
    }
  }

  /** How the store is, as this process sees it. */
  get storeHealth(): StoreHealth {
    return this.batcher.breaker.health
  }

  /** Decides while the store cannot. Made when it is first needed. */
  get local(): LocalLimiter {
    this.#local ??= new LocalLimiter()
    return this.#local
  }

  openCache(entries: number, lifeMillis: number): DenyCache {
    const cache = new DenyCache(entries, lifeMillis, () => this.#flushSoon())
    this.#caches.add(cache)
    return cache
  }

  openLeases(units: number): LeaseBook {
    const book = new LeaseBook(units, this.batcher, (refund) => {
      // What cannot be given back stays counted, until it leaves the window.
      this.refund([refund]).catch(() => {})
    })
    this.#books.add(book)
    return book
  }

  /** Ends what is held of a key: what comes next must meet its block or its penalty. */
  endLeases(key: string): void {
    for (const book of this.#books) book.end(key, false)
  }

  /** Whether what a query sent at this time said of a key may be remembered: it was not reset or refunded since. */
  isCurrent(key: string, sentAt: number): boolean {
    return sentAt > (this.#changed.get(key) ?? Number.NEGATIVE_INFINITY)
  }

  /** Leases go on: what is given back only makes more room. */
  async refund(refunds: readonly Refund[]): Promise<void> {
    await this.#checkUp()
    await this.#refunds.submit(refunds)
    for (const { key } of refunds) this.#ask(key)
  }

  async block(charge: Charge, micros: number, timeoutMs: number): Promise<void> {
    await this.#checkUp()
    await withinDeadline(timeoutMs, (signal) => this.#store.block(charge, micros, signal))
    this.#ask(charge.key)
    this.endLeases(charge.key)
  }

  /** The state of the charges, counting nothing. */
  async peek(charges: readonly Charge[], timeoutMs: number): Promise<Reading[]> {
    await this.#checkUp()
    return withinDeadline(timeoutMs, (signal) => this.#store.peek(charges, signal))
  }

  /** While the store is down nothing else asks it either: a connection that hangs would be in the way of the probe. */
  async #checkUp(): Promise<void> {
    const { refusal } = this.batcher.breaker
    if (refusal !== null) await rejectNextTurn(refusal)
  }

  /** How many resets there have been. */
  get resets(): number {
    return this.#resetCount
  }

  /** Whether a key was reset after so many resets: what a hit took before is gone. */
  wasReset(key: string, resets: number): boolean {
    return (this.#resets.get(key) ?? 0) > resets
  }

  /** Lets nothing that was remembered of a key stand. */
  #ask(key: string): void {
    this.#changed.set(key, performance.now())
    for (const cache of this.#caches) cache.forget(key)
  }

  async reset(key: string): Promise<void> {
    await this.#checkUp()
    await this.#store.reset([key])
    this.#resetCount += 1
    this.#resets.set(key, this.#resetCount)
    this.#ask(key)
    for (const cache of this.#caches) cache.drop(key)
    for (const book of this.#books) book.end(key, true)
    await this.#local?.reset(key)
  }

  #flushSoon(): void {
    if (this.#flushTimer !== null) return
    this.#flushTimer = setTimeout(() => {
      this.#flushTimer = null
      this.batcher.flush()
    }, FLUSH_MS)
    this.#flushTimer.unref()
  }
}
