import type { Head } from './account.js'
import type { Batch, SweepResult, Verdict } from './store.js'

/** What one batch admitted of a key. */
export interface MemoryEvent {
  readonly ts: number
  hits: number
  total: number
}

/** What is kept of one key. */
export interface MemoryKey {
  head: Head
  expiresAt: number
  /** Oldest first. */
  events: MemoryEvent[]
  /** Whether the key denied its last hit, or is blocked. */
  denies: boolean
}

/** The part of the entries that the events of one key may take. */
const LARGEST_PART = 1 / 25
/** How many keys that deny are passed over to find one that does not. */
const MOST_PASSED = 16

/**
 * The keys of a memory store, in the order of their last use, and no more of them and of their events than a bound.
 *
 * A flood of keys must not be the way to have a key forgotten that denies (hazard 148): such a key goes only when
 * nothing but such keys has been unused for as long.
 */
export class MemoryKeys {
  readonly #keys = new Map<string, MemoryKey>()
  readonly #most: number
  #events = 0

  /** @param most - the most keys and events, together */
  constructor(most: number) {
    this.#most = most
  }

  get(key: string): MemoryKey | undefined {
    return this.#keys.get(key)
  }

  set(key: string, entry: MemoryKey): void {
    this.#keys.set(key, entry)
  }

  delete(key: string): void {
    this.#events -= this.#keys.get(key)?.events.length ?? 0
    this.#keys.delete(key)
  }

  clear(): void {
    this.#keys.clear()
    this.#events = 0
  }

  startingWith(prefix: string): string[] {
    return [...this.#keys.keys()].filter((key) => key.startsWith(prefix))
  }

  /** Forgets the keys that had expired by then. */
  sweep(now: number): SweepResult {
    let keys = 0
    let events = 0
    for (const [key, entry] of this.#keys) {
      if (entry.expiresAt >= now) continue
      this.delete(key)
      keys += 1
      events += entry.events.length
    }
    return { keys, events, ran: true }
  }

  get size(): { keys: number; events: number } {
    return { keys: this.#keys.size, events: this.#events }
  }

  addEvent(entry: MemoryKey, event: MemoryEvent): void {
    entry.events.push(event)
    this.#events += 1
    if (entry.events.length > this.#most * LARGEST_PART) this.#join(entry)
  }

  removeEvents(entry: MemoryKey, from: number, count: number): void {
    this.#events -= entry.events.splice(from, count).length
  }

  /** Joins what lies close together, compared with the window, and no closer than it must. */
  #join(entry: MemoryKey): void {
    const most = this.#most * LARGEST_PART
    const before = entry.events.length
    for (let span = entry.head.memoWindow / most; entry.events.length > most * 0.75; span = 2 * span + 1)
      entry.events = joined(entry.events, span)
    this.#events -= before - entry.events.length
  }

  /** Notes what was used and denied, and forgets keys until the bound is kept. */
  evict(batch: Batch, verdicts: readonly Verdict[], now: number): void {
    if (this.#most === Number.POSITIVE_INFINITY) return
    batch.hits.forEach(({ charges }, i) => {
      charges.forEach(({ key }, j) => {
        const entry = this.#keys.get(key)
        if (entry === undefined) return
        entry.denies = verdicts[i]?.readings[j]?.denied === true || entry.head.blocked > now
        this.#moveBack(key, entry)
      })
    })
    let passed = 0
    for (const [key, entry] of this.#keys) {
      if (this.#keys.size + this.#events <= this.#most) break
      if (entry.denies && entry.expiresAt > now && passed < MOST_PASSED) {
        passed += 1
        this.#moveBack(key, entry)
      } else this.delete(key)
    }
  }

  #moveBack(key: string, entry: MemoryKey): void {
    this.#keys.delete(key)
    this.#keys.set(key, entry)
  }
}

/** Each takes along those before it within so many microseconds. What is late to leave admits nothing too much. */
function joined(events: readonly MemoryEvent[], span: number): MemoryEvent[] {
  const blocks: MemoryEvent[] = []
  for (const event of events.toReversed()) {
    const block = blocks.at(-1)
    if (block !== undefined && block.ts - event.ts < span) block.hits += event.hits
    else blocks.push({ ...event })
  }
  return blocks.reverse()
}
