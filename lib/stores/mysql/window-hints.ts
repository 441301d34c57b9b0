import { LRUCache } from 'lru-cache'

/** The most windows that are remembered. */
const ENTRIES = 50_000
/** How far ahead of the database's clock a hint looks: a lock may be waited for before the windows are read. */
const AHEAD_MICROS = 20_000

/**
 * Guesses which windows' first event will have left by the time a batch is decided, so that the new first event is
 * asked for in the same packet as everything else and not in one more round trip.
 *
 * Only a guess of what to ask: a window that was asked for in vain costs a seek, one that was not asked for costs a
 * round trip. What is decided depends on neither.
 */
export class WindowHints {
  /** When a window's first event leaves, in microseconds of the database's clock. It never leaves earlier. */
  readonly #leavesAt = new LRUCache<string, number>({ max: ENTRIES })
  /** The database's clock minus this process's monotonic clock, in microseconds. */
  #offset = 0

  /** Learns the database's clock. */
  observe(now: number): void {
    this.#offset = now - performance.now() * 1000
  }

  remember(key: string, windowMicros: number, leavesAt: number): void {
    this.#leavesAt.set(`${windowMicros} ${key}`, leavesAt)
  }

  forget(key: string, windowMicros: number): void {
    this.#leavesAt.delete(`${windowMicros} ${key}`)
  }

  /** Whether the window's first event may have left. */
  mayHaveMoved(key: string, windowMicros: number): boolean {
    const leavesAt = this.#leavesAt.get(`${windowMicros} ${key}`)
    return leavesAt !== undefined && leavesAt <= this.#offset + performance.now() * 1000 + AHEAD_MICROS
  }
}
