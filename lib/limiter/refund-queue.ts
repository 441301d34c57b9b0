import { withinDeadline } from '../stores/before-abort.js'
import type { Refund, Store } from '../stores/store.js'
import { StoreError } from '../stores/store-error.js'
import type { Breaker } from './breaker.js'
import { rejectNextTurn } from './reject-next-turn.js'

/** The most refunds in one call of the store, and the most keys that are locked together for them. */
const MOST_REFUNDS = 500
const MOST_KEYS = 50
/** The most that may wait. One more is not given back: its hit stays counted, which is the safe side. */
const MOST_WAITING = 10_000
/** How long one call of the store may take, in milliseconds. No request waits for it. */
const TIMEOUT_MS = 2000

interface Waiting {
  readonly refund: Refund
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/**
 * Gives hits back in group commits, as the batcher takes them: while one is under way, others queue. The refunds of a key
 * go together, since each of them would write the key's later events anew. What the store leaves, because too many
 * events come after it, goes key by key, and never twice before those that wait with others: who makes such refunds
 * delays nobody else's.
 */
export class RefundQueue {
  readonly #store: Store
  readonly #breaker: Breaker
  readonly #together = new Map<string, Waiting[]>()
  readonly #alone = new Map<string, Waiting[]>()
  #size = 0
  #running = false

  constructor(store: Store, breaker: Breaker) {
    this.#store = store
    this.#breaker = breaker
  }

  /** Resolves when the hits are given back; rejects with a `StoreError` when the store fails. */
  async submit(refunds: readonly Refund[]): Promise<void> {
    if (this.#size >= MOST_WAITING) {
      const error = new StoreError('ERR_STORE_CAPACITY', `${MOST_WAITING} refunds are waiting for the store`)
      return rejectNextTurn(error)
    }
    await Promise.all(refunds.map((refund) => this.#submit(refund)))
  }

  #submit(refund: Refund): Promise<void> {
    return new Promise((resolve, reject) => {
      enqueue(this.#together, { refund, resolve, reject })
      this.#size += 1
      if (this.#running) return
      this.#running = true
      // Not `queueMicrotask`: fake timers stop it.
      Promise.resolve().then(() => this.#run())
    })
  }

  async #run(): Promise<void> {
    while (this.#size > 0) {
      const left = await this.#giveBack(take(this.#together, MOST_KEYS))
      for (const waiting of left) enqueue(this.#alone, waiting)
      // What a store leaves of a single key would never be given back.
      const never = await this.#giveBack(take(this.#alone, 1))
      this.#settle(never, ({ resolve }) => resolve())
    }
    this.#running = false
  }

  /** Gives back, and tells what the store has left for a call of its own. */
  async #giveBack(group: readonly Waiting[]): Promise<readonly Waiting[]> {
    if (group.length === 0) return []
    const { refusal } = this.#breaker
    try {
      if (refusal !== null) throw refusal
      const refunds = group.map(({ refund }) => refund)
      const left = new Set(await withinDeadline(TIMEOUT_MS, (signal) => this.#store.refund(refunds, signal)))
      this.#settle(
        group.filter(({ refund }) => !left.has(refund)),
        ({ resolve }) => resolve(),
      )
      return group.filter(({ refund }) => left.has(refund))
    } catch (error) {
      this.#settle(group, ({ reject }) => reject(error))
      return []
    }
  }

  #settle(group: readonly Waiting[], settle: (waiting: Waiting) => void): void {
    this.#size -= group.length
    group.forEach(settle)
  }
}

function enqueue(queue: Map<string, Waiting[]>, waiting: Waiting): void {
  const { key } = waiting.refund
  const same = queue.get(key)
  if (same === undefined) queue.set(key, [waiting])
  else same.push(waiting)
}

/** Takes what waits for the first keys. A key with more than fits comes last from then on. */
function take(queue: Map<string, Waiting[]>, mostKeys: number): Waiting[] {
  const taken: Waiting[] = []
  let keys = 0
  for (const [key, waiting] of queue) {
    taken.push(...waiting.splice(0, MOST_REFUNDS - taken.length))
    queue.delete(key)
    if (waiting.length > 0) queue.set(key, waiting)
    keys += 1
    if (keys === mostKeys || taken.length === MOST_REFUNDS) break
  }
  return taken
}
