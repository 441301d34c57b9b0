/** How long a chain of promises is followed: from an answer through its caller to the next hit are about ten. */
const STEPS = 32
/** What part of a batch's time the callers' work must be at least for the next batch to go first. */
const SHARE = 0.5
/** What part of the expected work is that of the last batch. */
const WEIGHT = 0.5

/**
 * When a batch comes back: what goes first, its answers or the next batch?
 *
 * Answers first, and callers who hit again at once share the next batch, and with it one commit. But where callers have
 * much to do, as with an HTTP response to write, the store would have nothing to do meanwhile: then what waits is sent
 * first, and both work at the same time.
 */
export class Turnaround {
  /** How long the callers worked when they were answered, in milliseconds. */
  #workMs = 0

  /**
   * Gives the answers, now or while the next batch is being sent. Resolves when that may be.
   *
   * @param batchMs - how long the store takes for a batch
   * @param couldSend - whether hits wait that the store could decide while the callers work
   */
  async answer(answer: () => void, batchMs: number, couldSend: boolean): Promise<void> {
    if (couldSend && this.#workMs > batchMs * SHARE) process.nextTick(() => this.#watch(answer))
    else await this.#watch(answer)
  }

  async #watch(answer: () => void): Promise<void> {
    const begun = performance.now()
    answer()
    // Also with a store in this process, as in applications' tests whose fake timers stop `nextTick` and `queueMicrotask`.
    for (let step = 0; step < STEPS; step += 1) await null
    this.#workMs += WEIGHT * (performance.now() - begun - this.#workMs)
  }
}
