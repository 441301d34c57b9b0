import { optionError } from './option-error.js'

/**
 * Usage is kept by the quarter of an hour, in microseconds: the offsets of all time zones are multiples of it, so the days
 * of each consist of whole ones.
 */
export const SLICE_MICROS = 900_000_000

/** The tables that a store needs only where it keeps usage. */
export const USAGE_TABLES: readonly string[] = ['rate_usage', 'rate_usage_limits']

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

/**
 * Whose usage is kept when its events are deleted, and for how long: what this store was told, and what the database was
 * told by others.
 */
export class KeptUsage {
  /** In microseconds, by the name of the limit; 0 to keep none. */
  readonly #told: ReadonlyMap<string, number>
  #micros: ReadonlyMap<string, number>

  /**
   * @param keepUsageSeconds - seconds by the name of a limit
   * @throws TypeError with the option's name, the rule, and the value with its type.
   */
  constructor(keepUsageSeconds: Readonly<Record<string, number>> = {}) {
    if (typeof keepUsageSeconds !== 'object' || keepUsageSeconds === null || Array.isArray(keepUsageSeconds))
      throw optionError('keepUsageSeconds', 'an object of seconds by the name of a limit', keepUsageSeconds)
    const entries = Object.entries(keepUsageSeconds)
    for (const [name, seconds] of entries) {
      if (!/^[A-Za-z0-9._-]{1,64}$/.test(name))
        throw optionError('keepUsageSeconds', 'an object of seconds by the name of a limit', name)
      if (typeof seconds === 'number' && seconds >= 0 && seconds <= TEN_YEARS_SECONDS) continue
      throw optionError(`keepUsageSeconds.${name}`, `a number from 0 to ${TEN_YEARS_SECONDS}`, seconds)
    }
    this.#told = new Map(entries.map(([name, seconds]) => [name, Math.round(seconds * 1_000_000)]))
    this.#micros = kept(this.#told)
  }

  /** Whether this store was told to keep any, and so needs the tables. */
  get isAsked(): boolean {
    return kept(this.#told).size > 0
  }

  get isEmpty(): boolean {
    return this.#micros.size === 0
  }

  /** How long the usage of a stored key is kept, in microseconds; undefined when it is not. */
  microsOf(key: string): number | undefined {
    // A stored key begins with its limit's name, and what follows the name is in no name.
    return this.#micros.get(/^[A-Za-z0-9._-]*/.exec(key)?.[0] ?? '')
  }

  /**
   * Learns what the database says, and tells what must be said to it: microseconds by name, where they are other ones, 0 for
   * a name that must go.
   */
  agree(found: ReadonlyMap<string, number>): [name: string, micros: number][] {
    this.#micros = kept(new Map([...found, ...this.#told]))
    return [...this.#told].filter(([name, micros]) => (found.get(name) ?? 0) !== micros)
  }
}

const kept = (micros: ReadonlyMap<string, number>): Map<string, number> =>
  new Map([...micros].filter(([, each]) => each > 0))
