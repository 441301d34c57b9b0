import type { Hit } from '../stores/store.js'
import type { StoreError } from '../stores/store-error.js'
import { type Pending, rejectPending } from './pending.js'
import type { Quarantine } from './quarantine.js'
import { QueueShares } from './queue-shares.js'

/** The most hits in one batch: it bounds the size of a packet and how long its locks are held. */
export const MOST_HITS = 500
/** And the most keys, since a hit may have several: with the longest keys that is a packet of less than a megabyte. */
const MOST_KEYS = 1000

/** The hits that wait for a batch to take them, in the order in which they came. */
export class WaitingLine {
  #queue: Pending[] = []
  readonly #shares = new QueueShares()

  get length(): number {
    return this.#queue.length
  }

  [Symbol.iterator](): Iterator<Pending> {
    return this.#queue[Symbol.iterator]()
  }

  /** What a hit has to wait for before it joins, or null when it may at once: see `QueueShares`. */
  turn({ charges }: Hit, deadline: number, maxPending: number): Promise<number> | null {
    return this.#shares.turn(this.#queue, charges, deadline, maxPending)
  }

  join(pending: Pending): void {
    this.#queue.push(pending)
    this.#shares.add(pending)
  }

  /** Hits were answered, `lost` milliseconds late because this process stood still: who waits for a turn may ask again. */
  answered(lost = 0): void {
    this.#shares.answered(lost)
  }

  /** What the next batch takes. */
  take(): Pending[] {
    const batch = this.#queue.splice(0, this.#endOfBatch())
    for (const { hit } of batch) this.#shares.remove(hit)
    if (this.#queue.length === 0) this.#shares.clear()
    return batch
  }

  #endOfBatch(): number {
    let keys = 0
    const end = this.#queue.findIndex(({ hit }, i) => {
      keys += hit.charges.length
      return i === MOST_HITS || (i > 0 && keys > MOST_KEYS)
    })
    return end < 0 ? this.#queue.length : end
  }

  /** The same while some keys may be locked by others: hits on those stay, and are refused when they are known to be. */
  takeFree(quarantine: Quarantine): Pending[] {
    const batch: Pending[] = []
    let keys = 0
    this.#keep((pending) => {
      const { hit } = pending
      const refusal = quarantine.refusal(hit)
      if (refusal !== null) setImmediate(rejectPending, pending, refusal)
      else if (batch.length < MOST_HITS && keys < MOST_KEYS && !quarantine.holds(hit)) {
        keys += hit.charges.length
        batch.push(pending)
      } else return true
      return false
    })
    this.#shares.answered()
    return batch
  }

  /**
   * Where more wait than a batch takes: sends those away that would be answered too late. Else each batch would be of
   * hits that it is too late for, while the others grow too old in their turn, and no hit would be decided any more.
   *
   * @param due - when the next batch may be expected to be decided, on the monotonic clock
   * @param reason - gives what each of them is told
   */
  shed(due: number, reason: () => StoreError): void {
    let surplus = this.#queue.length - MOST_HITS
    if (surplus <= 0) return
    this.#keep((pending) => {
      if (surplus <= 0 || pending.deadline >= due) return true
      surplus -= 1
      // In the next turn of the event loop: see `rejectNextTurn`.
      setImmediate(rejectPending, pending, reason())
      return false
    })
    this.#shares.answered()
  }

  /** Lets those go that were answered. */
  dropAnswered(): void {
    this.#keep(({ answered }) => !answered)
  }

  /** Lets all go. */
  drain(): Pending[] {
    this.#shares.clear()
    return this.#queue.splice(0)
  }

  #keep(stays: (pending: Pending) => boolean): void {
    this.#queue = this.#queue.filter((pending) => {
      if (stays(pending)) return true
      this.#shares.remove(pending.hit)
      return false
    })
    if (this.#queue.length === 0) this.#shares.clear()
  }
}
