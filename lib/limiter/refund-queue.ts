import { withinDeadline } from '../stores/before-abort.js'
import type { Refund, Store } from '../stores/store.js'
import { StoreError } from '../stores/store-error.js'
import type { Breaker } from './breaker.js'
import { rejectNextTurn } from './reject-next-turn.js'

/** The most refunds in one transaction. */
const MOST_REFUNDS = 500
/** The most that may wait. One more is not given back: its hit stays counted, which is the safe side. */
const MOST_WAITING = 10_000
/** How long one transaction of refunds may take, in milliseconds. No request waits for it. */
const TIMEOUT_MS = 2000

interface Waiting {
  readonly refunds: readonly Refund[]
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** Gives hits back in group commits, as the batcher takes them: while one is under way, others queue. */
export class RefundQueue {
  readonly #store: Store
  readonly #breaker: Breaker
  #queue: Waiting[] = []
  #running = false

  constructor(store: Store, breaker: Breaker) {
    this.#store = store
    this.#breaker = breaker
  }

  /** Resolves when the hits are given back; rejects with a `StoreError` when the store fails. */
  submit(refunds: readonly Refund[]): Promise<void> {
    if (this.#queue.length >= MOST_WAITING) {
      const error = new StoreError('ERR_STORE_CAPACITY', `${MOST_WAITING} refunds are waiting for the store`)
      return rejectNextTurn(error)
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ refunds, resolve, reject })
      if (this.#running) return
      this.#running = true
      // Not `queueMicrotask`: fake timers stop it.
      Promise.resolve().then(() => this.#run())
    })
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const group = this.#queue.splice(0, MOST_REFUNDS)
      const refunds = group.flatMap((each) => each.refunds)
      const { refusal } = this.#breaker
      try {
        if (refusal !== null) throw refusal
        await withinDeadline(TIMEOUT_MS, (signal) => this.#store.refund(refunds, signal))
        for (const { resolve } of group) resolve()
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    this.#running = false
  }
}
