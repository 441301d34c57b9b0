import { LRUCache } from 'lru-cache'
import type { Policy, Reading, Refusal } from '../stores/store.js'

/** A denial that holds for a while, whoever else acts on the key. */
interface Denial {
  readonly key: string
  readonly policy: Policy
  /** The cost of the hit that was denied. */
  readonly cost: number
  readonly reading: Reading
  /** When the reading arrived, on this process's monotonic clock, in milliseconds. What is told counts from here. */
  readonly readAt: number
  /** Until when it may be answered from memory, on the same clock. Counts from when the query was sent. */
  readonly until: number
  /** When the denial ends; later than `until` where that is cut short, so that a reset by others is seen. */
  readonly ends: number
  /** Attempts refused from memory and not yet counted by the store: only of a fixed window. */
  attempts: number
  /** All attempts refused from memory, for what the caller is told. */
  refused: number
}

/** No more attempts are told or counted of one denial: sums stay exact. */
const MOST_ATTEMPTS = 1_000_000_000_000

/**
 * Answers hits that cannot pass, without asking the store, and without being wrong: admitted events never leave
 * early, so until the event that must leave has left, a hit of that cost is over the limit whatever others do.
 *
 * The database read its clock somewhere between sending and answering. An entry ends as if that was when the query
 * was sent, a little early rather than late; the waiting time that is told counts from the answer, a little late
 * rather than early. An entry lives a second at the most, so that a reset in another process is seen; a reset in this
 * one drops it.
 */
export class DenyCache {
  readonly #entries: number
  /** Made with the first denial: it takes its room at once, and most limiters of most processes deny nobody. */
  #denials: LRUCache<string, Denial> | null = null
  readonly #lifeMillis: number
  readonly #onRefusal: () => void
  readonly #uncounted = new Set<Denial>()

  /**
   * @param entries - the most keys it remembers; the least recently used are dropped
   * @param lifeMillis - the longest life of an entry, in milliseconds
   * @param onRefusal - called when an attempt was refused that the store still has to count
   */
  constructor(entries: number, lifeMillis: number, onRefusal: () => void) {
    this.#entries = entries
    this.#lifeMillis = lifeMillis
    this.#onRefusal = onRefusal
  }

  /** Remembers what a denial means for the hits to come. */
  remember(key: string, policy: Policy, cost: number, reading: Reading, sentAt: number): void {
    if (reading.isUpperBound === true) return
    const holds = holdsFor(reading, policy) / 1000
    this.#denials ??= new LRUCache({ max: this.#entries })
    this.#denials.set(key, {
      key,
      policy,
      cost,
      reading,
      readAt: performance.now(),
      until: sentAt + Math.min(holds, this.#lifeMillis),
      ends: sentAt + holds,
      attempts: 0,
      refused: 0,
    })
  }

  /** The reading of a hit that cannot pass, or null when the store must decide. */
  refuse(key: string, policy: Policy, cost: number, now: number): Reading | null {
    const denial = this.#find(key, policy, cost, now)
    if (denial === null || now >= denial.until) return null
    if (denial.policy.algorithm === 'fixed-window') {
      denial.attempts = Math.min(denial.attempts + cost, MOST_ATTEMPTS)
      denial.refused = Math.min(denial.refused + cost, MOST_ATTEMPTS)
      this.#uncounted.add(denial)
      this.#onRefusal()
    }
    return readingOf(denial, policy, cost, now)
  }

  /**
   * The reading of a hit that could not pass when the store was last asked, and cannot until that denial ends, unless
   * somebody reset the key. Or null when nothing is known against it. For while the store cannot be asked; counts
   * nothing.
   */
  recall(key: string, policy: Policy, cost: number, now: number): Reading | null {
    const denial = this.#find(key, policy, cost, now)
    return denial === null ? null : readingOf(denial, policy, cost, now)
  }

  /** The denial that says something of such a hit, and has not ended. */
  #find(key: string, policy: Policy, cost: number, now: number): Denial | null {
    const denial = this.#denials?.get(key)
    if (denial === undefined || !isSameRule(denial.policy, policy)) return null
    // A smaller cost may pass, a larger one must wait longer than is known. Only an overfull fixed window admits
    // nothing more, whatever its cost.
    if (cost !== denial.cost && denial.policy.algorithm !== 'fixed-window') return null
    if (now < denial.ends) return denial
    this.#denials?.delete(key)
    return null
  }

  /** Asks the store about a key again, because some of it was given back, or it was admitted. */
  forget(key: string): void {
    this.#denials?.delete(key)
  }

  /** Forgets a key and what was refused of it, because it was reset. */
  drop(key: string): void {
    this.#denials?.delete(key)
    for (const denial of this.#uncounted) if (denial.key === key) this.#uncounted.delete(denial)
  }

  /** Attempts that were refused from memory since the last call, at most so many keys. */
  takeRefusals(most: number): Refusal[] {
    const refusals: Refusal[] = []
    for (const denial of this.#uncounted) {
      if (refusals.length >= most) break
      this.#uncounted.delete(denial)
      const { key, policy, attempts, reading } = denial
      refusals.push({ key, policy, attempts, windowStart: reading.windowStart, seen: reading.used })
      denial.attempts = 0
    }
    return refusals
  }
}

function readingOf({ reading, readAt, refused }: Denial, policy: Policy, cost: number, now: number): Reading {
  const elapsed = (now - readAt) * 1000
  return {
    ...reading,
    used: reading.used + refused,
    retryMicros: cost > policy.limit ? Number.POSITIVE_INFINITY : holdsFor(reading, policy) - elapsed,
    resetMicros: Math.max(0, reading.resetMicros - elapsed),
  }
}

/** A limit that depends on the request may be another one for the next request on the key. */
const isSameRule = (a: Policy, b: Policy): boolean =>
  a === b || (a.limit === b.limit && a.windowMicros === b.windowMicros)

/** How long the denial stands, in microseconds: a fixed window's ends with it, even that of an oversized cost. */
const holdsFor = ({ retryMicros, resetMicros }: Reading, policy: Policy): number =>
  policy.algorithm === 'fixed-window' && !Number.isFinite(retryMicros) ? resetMicros : retryMicros
