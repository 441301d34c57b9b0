import type { Policy, Store } from '../stores/store.js'
import { Batcher } from './batcher.js'
import { DenyCache } from './deny-cache.js'

/** How long an attempt that was refused from memory may stay uncounted when no batch takes it along. */
const FLUSH_MS = 1000

/**
 * What all limiters of one store share: the batcher, so that their hits go together, and the view of all their deny
 * caches, so that a reset by one limiter is seen by the others.
 */
export class Lane {
  readonly batcher: Batcher
  readonly #store: Store
  readonly #caches = new Set<DenyCache>()
  /** How long events are kept, by the name of their policies. */
  readonly #kept = new Map<string, { micros: number }>()
  #lastReset = Number.NEGATIVE_INFINITY
  #flushTimer: NodeJS.Timeout | null = null

  private constructor(store: Store) {
    this.#store = store
    this.batcher = new Batcher(store, (most) => {
      const refusals = []
      for (const cache of this.#caches) refusals.push(...cache.takeRefusals(most - refusals.length))
      return refusals
    })
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

  openCache(entries: number, lifeMillis: number): DenyCache {
    const cache = new DenyCache(entries, lifeMillis, () => this.#flushSoon())
    this.#caches.add(cache)
    return cache
  }

  /** Whether what a query sent at this time said may be remembered: no key was reset since. */
  isCurrent(sentAt: number): boolean {
    return sentAt > this.#lastReset
  }

  async reset(key: string): Promise<void> {
    await this.#store.reset([key])
    this.#lastReset = performance.now()
    for (const cache of this.#caches) cache.drop(key)
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
