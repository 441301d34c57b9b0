import { withinDeadline } from '../stores/before-abort.js'
import type { Refund, Store } from '../stores/store.js'

/** The most refunds in one transaction. */
const MOST_REFUNDS = 500
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
  #queue: Waiting[] = []
  #running = false

  constructor(store: Store) {
    this.#store = store
  }

  /** Resolves when the hits are given back; rejects with a `StoreError` when the store fails. */
  submit(refunds: readonly Refund[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ refunds, resolve, reject })
      if (this.#running) return
      this.#running = true
      queueMicrotask(() => this.#run())
    })
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0) {
      const group = this.#queue.splice(0, MOST_REFUNDS)
      const refunds = group.flatMap((each) => each.refunds)
      try {
        await withinDeadline(TIMEOUT_MS, (signal) => this.#store.refund(refunds, signal))
        for (const { resolve } of group) resolve()
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    this.#running = false
  }
}
