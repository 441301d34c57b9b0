import { optionError } from './option-error.js'

/**
 * Usage is kept by the quarter of an hour, in microseconds: the offsets of all time zones are multiples of it, so the days
 * of each consist of whole ones.
 */
export const SLICE_MICROS = 900_000_000

/** The one table that a store needs only where it keeps usage. */
export const USAGE_TABLE = 'rate_usage'

const TEN_YEARS_SECONDS = 315_360_000

/** What a key's hits have cost in a stretch of time that began at `at`, in microseconds since the epoch. */
export interface UsageSlice {
  readonly at: number
  readonly cost: number
}

/** Reads usage. `MysqlStore` and `SqliteStore` do. */
export interface UsageStore {
  /**
   * What was admitted of a stored key from one instant on and before another, in stretches of `micros` that begin at
   * multiples of it; those without any are left out. What is kept as quarters of an hour is told at the beginning of its
   * quarter.
   */
  readUsage(key: string, from: number, to: number, micros: number): Promise<UsageSlice[]>
}

/** Whose usage is kept when its events are deleted, and for how long. */
export class KeptUsage {
  readonly #micros: ReadonlyMap<string, number>

  /**
   * @param keepUsageSeconds - seconds by the name of a limit
   * @throws TypeError with the option's name, the rule, and the value with its type.
   */
  constructor(keepUsageSeconds: Readonly<Record<string, number>> = {}) {
    if (typeof keepUsageSeconds !== 'object' || keepUsageSeconds === null || Array.isArray(keepUsageSeconds))
      throw optionError('keepUsageSeconds', 'an object of seconds by the name of a limit', keepUsageSeconds)
    const entries = Object.entries(keepUsageSeconds)
    for (const [name, seconds] of entries) {
      if (typeof seconds === 'number' && seconds >= 1 && seconds <= TEN_YEARS_SECONDS) continue
      throw optionError(`keepUsageSeconds.${name}`, `a number from 1 to ${TEN_YEARS_SECONDS}`, seconds)
    }
    this.#micros = new Map(entries.map(([name, seconds]) => [name, Math.round(seconds * 1_000_000)]))
  }

  get isEmpty(): boolean {
    return this.#micros.size === 0
  }

  /** How long the usage of a stored key is kept, in microseconds; undefined when it is not. */
  microsOf(key: string): number | undefined {
    // A stored key begins with its limit's name, and what follows the name is in no name.
    return this.#micros.get(/^[A-Za-z0-9._-]*/.exec(key)?.[0] ?? '')
  }
}
