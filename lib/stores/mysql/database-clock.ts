/**
 * What this process can tell of the database's clock without asking it: never more than it shows, for it was read before
 * its answer arrived. Only for guesses of what to ask; no decision rests on it.
 */
export class DatabaseClock {
  /** The database's clock minus this process's monotonic clock when an answer arrived, in microseconds. */
  #offset: number | null = null

  /** Learns the clock from an answer that has just arrived. */
  observe(now: number): void {
    this.#offset = now - Math.ceil(performance.now() * 1000)
  }

  /** Microseconds since the epoch, or null when the clock was never read. */
  estimate(): number | null {
    return this.#offset === null ? null : this.#offset + Math.floor(performance.now() * 1000)
  }
}
