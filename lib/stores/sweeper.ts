/** Longest delay that timers of Node take; a longer one would fire at once (hazard 136). */
const LONGEST_SECONDS = 2_147_483
/** How long a process may hold the sweep of a database between two signs of life, in microseconds. */
export const SWEEP_LEASE_MICROS = 30_000_000

/**
 * Runs a sweep again and again, without cron. Started by the first decision, not by a constructor; its timer keeps
 * no process alive. Each wait varies by a quarter, so that processes started together do not sweep together.
 */
export class Sweeper {
  readonly #sweep: () => Promise<unknown>
  readonly #seconds: number | false
  #timer: NodeJS.Timeout | null = null
  #stopped = false

  constructor(sweep: () => Promise<unknown>, seconds: number | false) {
    this.#sweep = sweep
    this.#seconds = seconds
  }

  /** Begins, if it has not begun yet and is not switched off. */
  start(): void {
    if (this.#timer !== null || this.#stopped || this.#seconds === false) return
    const seconds = Math.min(this.#seconds * (0.75 + Math.random() / 2), LONGEST_SECONDS)
    this.#timer = setTimeout(() => this.#run(), seconds * 1000)
    this.#timer.unref()
  }

  async #run(): Promise<void> {
    try {
      await this.#sweep()
    } catch {
      // A sweep that fails is tried again later; a database that is down is reported by the decisions.
    }
    this.#timer = null
    this.start()
  }

  /** Ends it for good. */
  stop(): void {
    this.#stopped = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }
}
