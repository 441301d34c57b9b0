/** What is known of one key. */
export interface KeyCount {
  readonly key: string
  /** Hits since it was first met here, or met again after it was dropped. */
  hits: number
  /** How many of them were denied. */
  denied: number
  /** How full the limit was at the last of them; null while only a failing store was asked. */
  fill: Fill | null
  /** What a key must have had more of to be kept, when this one came. */
  readonly floor: number
}

/** How full a limit is for a key. */
export interface Fill {
  readonly used: number
  readonly limit: number
  /** When a hit of cost 1 would pass, in milliseconds since the epoch: 0 is now, null never. */
  readonly freesAt: number | null
  /** When that was so, in milliseconds since the epoch. */
  readonly at: number
}

/** The most keys that are kept. */
const MOST = 128

/**
 * Finds the keys that are hit most, in bounded memory (Misra and Gries, "Finding repeated elements"): when there is no room
 * left, the lighter half goes, and what comes later must outweigh the heaviest that went. A key with more than a
 * sixty-fourth of all hits is always among those kept, however many other keys there are; with no more than 128 keys all
 * numbers are exact.
 */
export class HeavyKeys {
  readonly #keys = new Map<string, KeyCount>()
  #floor = 0

  /** Counts a hit, and gives what is kept of its key. */
  count(key: string): KeyCount {
    let kept = this.#keys.get(key)
    if (kept === undefined) {
      if (this.#keys.size >= MOST) this.#drop()
      kept = { key, hits: 0, denied: 0, fill: null, floor: this.#floor }
      this.#keys.set(key, kept)
    }
    kept.hits += 1
    return kept
  }

  all(): IterableIterator<KeyCount> {
    return this.#keys.values()
  }

  #drop(): void {
    const weights = Float64Array.from(this.#keys.values(), weightOf).sort()
    this.#floor = weights[MOST / 2] as number
    for (const kept of this.#keys.values()) if (weightOf(kept) <= this.#floor) this.#keys.delete(kept.key)
  }
}

const weightOf = ({ floor, hits }: KeyCount): number => floor + hits
