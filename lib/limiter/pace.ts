import { StoreError } from '../stores/store-error.js'

/** What part of the expected time of a batch is that of the last one. */
const WEIGHT = 0.5

/**
 * How fast the store answers. Tells a store that is silent from hits that come faster than it can decide them: clients
 * can bring about the one and not the other, so it must not be the way to be let through uncounted (see `Fallback`).
 */
export class Pace {
  /** When the store last decided a batch, on the monotonic clock. */
  #answeredAt = Number.NEGATIVE_INFINITY
  #batchMs = 0

  /** A batch was decided that was sent at this time on the monotonic clock. */
  answered(sentAt: number): void {
    this.#answeredAt = performance.now()
    this.#batchMs += WEIGHT * (this.#answeredAt - sentAt - this.#batchMs)
  }

  /** How long the next batch may be expected to take, in milliseconds. */
  get batchMs(): number {
    return this.#batchMs
  }

  /** Why a hit was not decided in time that has waited since then on the monotonic clock. */
  late(askedAt: number): StoreError {
    return this.#answeredAt > askedAt ? overload() : timeout()
  }
}

/** Of a hit that comes when there is too much to do. */
export const overload = (): StoreError =>
  new StoreError('ERR_STORE_CAPACITY', 'The store answers, but could not decide this hit in time')

/** Of a store that does not answer. */
export const timeout = (): StoreError =>
  new StoreError('ERR_STORE_TIMEOUT', 'The store did not answer in time')
