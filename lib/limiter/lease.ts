import type { Charge, Policy, Reading, Refund } from '../stores/store.js'
import type { Answer } from './pending.js'

/** The longest life of a lease, in microseconds: how long a process may not hear of what others do to the key. */
const LONGEST_MICROS = 1_000_000
/** A lease of a short window is a small part of it, so that it ends little later than a hit would. */
const PART_OF_WINDOW = 10
/** The part of a lease's life that is used: chrony slews a clock by a twelfth at the most, ours and the database's. */
const USED_PART = 0.8

/** How long after its grant a lease ends, in microseconds. */
export const lifeOf = ({ windowMicros }: Policy): number =>
  Math.min(LONGEST_MICROS, Math.floor(windowMicros / PART_OF_WINDOW))

/**
 * Units of a key that this process hands out by itself.
 *
 * The database granted them somewhere between sending and answering. Their life counts from when the query was sent, so
 * that it ends here before it does there. The wall clock is asked as well, as the monotonic one stands still while the
 * machine is suspended.
 */
export class Lease {
  readonly charge: Charge
  /** Units that nobody has used. */
  left: number
  /** Its end on the monotonic clock, in milliseconds. */
  readonly until: number
  readonly #wallUntil: number
  /** What the store said when it granted the units. Its `at` is the time under which they are stored. */
  readonly #reading: Reading
  readonly #sentAt: number
  /** When the reading arrived, on the monotonic clock. What is told counts from here. */
  readonly #readAt = performance.now()

  /**
   * @param answer - grants the units, just now
   * @param left - how many of them are not used yet
   */
  constructor(charge: Charge, { verdict, sentAt }: Answer, left: number) {
    const { policy } = charge
    const reading = verdict.readings[0] as Reading
    const ends = policy.algorithm === 'fixed-window' ? reading.resetMicros : Number.POSITIVE_INFINITY
    this.charge = charge
    this.left = left
    this.until = sentAt + (Math.min(lifeOf(policy), ends) / 1000) * USED_PART
    this.#wallUntil = Date.now() + (this.until - this.#readAt)
    this.#reading = reading
    this.#sentAt = sentAt
  }

  isLive(now: number): boolean {
    return now < this.until && Date.now() < this.#wallUntil
  }

  /** Whether both are of one batch: then they are stored as one. */
  isStoredWith(other: Lease): boolean {
    return other.#reading.at === this.#reading.at
  }

  /** Admits a hit. What is used is what the store had counted, without what of this lease is left. */
  answer(now: number): Answer {
    const reading = this.#reading
    const used = reading.used - this.left
    const resetMicros = Math.max(0, reading.resetMicros - (now - this.#readAt) * 1000)
    return { sentAt: this.#sentAt, verdict: { allowed: true, readings: [{ ...reading, used, resetMicros }] } }
  }

  /** What a peek shall say here: in the store all units of the lease count, but a hit finds those that are left. */
  seen(reading: Reading): Reading {
    const used = Math.max(0, reading.used - this.left)
    // A block denies too, and is told of: then the window need not be full.
    const isFull = reading.used >= this.charge.policy.limit
    return isFull && this.left > 0
      ? { ...reading, used, denied: false, retryMicros: 0 }
      : { ...reading, used }
  }

  /** Gives back what is left. */
  get refund(): Refund {
    return { ...this.charge, cost: this.left, at: this.#reading.at }
  }
}
