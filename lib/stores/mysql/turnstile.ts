import { beforeAbort } from '../before-abort.js'
import { StoreError } from '../store-error.js'

/** The most that may wait: one that hangs may keep the others for ten seconds. */
const MOST_WAITING = 1000

/**
 * Lets one through at a time: whatever is no decision (peeks, refunds, resets, sweeps) shares one connection, so that a
 * flood of it, or one of it that waits for a lock, leaves the other connection to decisions.
 */
export class Turnstile {
  #tail: Promise<void> = Promise.resolve()
  #waiting = 0
  /** When the one that is through began, on the monotonic clock. */
  #began: number | null = null

  /** For how long the one that is through has been at its work, in milliseconds. */
  get heldFor(): number {
    return this.#began === null ? 0 : performance.now() - this.#began
  }

  /** Runs the work when its turn has come; rejects with the signal's reason if that comes first. */
  async pass<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#waiting >= MOST_WAITING) {
      throw new StoreError(
        'ERR_STORE_CAPACITY',
        `${MOST_WAITING} calls are waiting for the store's second connection`,
      )
    }
    this.#waiting += 1
    const before = this.#tail
    let open = (): void => {}
    this.#tail = new Promise((resolve) => {
      open = resolve
    })
    try {
      await beforeAbort(before, signal)
      this.#began = performance.now()
      try {
        return await work()
      } finally {
        this.#began = null
      }
    } finally {
      // Who gives up his place must not let the next one overtake those before.
      void before.then(() => {
        this.#waiting -= 1
        open()
      })
    }
  }
}
