import type { Decision } from '../../limiter/decision.js'

/** How far back it goes: fifteen minutes. */
export const SERIES_SECONDS = 900

/** In the order in which a second's three numbers are told. */
const OUTCOMES = ['allowed', 'denied', 'degraded'] as const satisfies Decision['outcome'][]
const WIDTH = OUTCOMES.length

/** Decisions of one limit, counted by second and outcome, in a ring: its size is the same whatever happens. */
export class DecisionSeries {
  readonly #counts = new Uint32Array(SERIES_SECONDS * WIDTH)
  /** The latest second that anything was counted in, since the epoch. */
  #newest = 0

  count(outcome: Decision['outcome'], second: number): void {
    // A clock that was set back by more than the whole ring: what is in it would never be reached again.
    if (second <= this.#newest - SERIES_SECONDS) this.#newest = 0
    if (second > this.#newest) {
      for (let old = Math.max(this.#newest + 1, second - SERIES_SECONDS + 1); old <= second; old += 1) {
        const start = (old % SERIES_SECONDS) * WIDTH
        this.#counts.fill(0, start, start + WIDTH)
      }
      this.#newest = second
    }
    const at = (second % SERIES_SECONDS) * WIDTH + OUTCOMES.indexOf(outcome)
    this.#counts[at] = (this.#counts[at] as number) + 1
  }

  /** The counts of the seconds from one to another, three numbers each: allowed, denied, degraded. */
  between(from: number, to: number): number[] {
    const counts: number[] = []
    for (let second = from; second <= to; second += 1) {
      const known = second <= this.#newest && second > this.#newest - SERIES_SECONDS
      const start = (second % SERIES_SECONDS) * WIDTH
      if (known) counts.push(...this.#counts.subarray(start, start + WIDTH))
      else counts.push(0, 0, 0)
    }
    return counts
  }
}
