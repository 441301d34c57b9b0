import { MemoryStore } from '../stores/memory-store.js'
import type { Charge, Hit, Reading, Refund, Verdict } from '../stores/store.js'

/** The most keys and events that are held for one store: some 30 MB. */
const ENTRIES = 250_000

/** What is kept in memory cannot be late. */
const never = new AbortController().signal

/**
 * Limits by what this process counts by itself, for `onStoreError: 'local'`: exactly, by the same policies, all keys of
 * a hit or none. All limiters on a store share one, as they share the store.
 *
 * What was counted here stays when the store is back, until it has left its window: the store may fail again within
 * it. It is never written to the store.
 */
export class LocalLimiter {
  /** By the monotonic clock, at its place in time: a clock that is set must not open or hold a window. */
  readonly #memory = new MemoryStore({
    clock: () => performance.timeOrigin + performance.now(),
    maxEntries: ENTRIES,
  })

  async decide(hit: Hit): Promise<Verdict> {
    const [verdict] = await this.#memory.decide({ hits: [hit], refusals: [] }, never)
    return verdict as Verdict
  }

  peek(charges: readonly Charge[]): Promise<Reading[]> {
    return this.#memory.peek(charges, never)
  }

  async refund(refunds: readonly Refund[]): Promise<void> {
    await this.#memory.refund(refunds, never)
  }

  reset(key: string): Promise<void> {
    return this.#memory.reset([key])
  }
}

/** This process's part of a limit that so many share: rounded up, so that none is 0 that was not. */
export const localCharge = ({ key, policy }: Charge, share: number): Charge =>
  share === 1 ? { key, policy } : { key, policy: { ...policy, limit: Math.ceil(policy.limit / share) } }
