import { createHash } from 'node:crypto'
import { type Fill, HeavyKeys, type KeyCount } from './heavy-keys.js'

/** How many minutes are looked at, the one that is under way among them. */
export const RECENT_MINUTES = 5
/** The longest key that is kept as it is, in UTF-16 units; of a longer one, its beginning and a digest. */
const LONGEST_KEY = 512

/** A key, and what it did in the last minutes. */
export interface RecentKey {
  readonly key: string
  /** Whether only its beginning is here, and a digest: it can be told from others, but not looked up. */
  readonly cut: boolean
  readonly hits: number
  readonly denied: number
  readonly fill: Fill | null
}

/** The keys that were hit most in the last minutes: a summary for each minute, each of bounded size. */
export class RecentKeys {
  readonly #minutes: { minute: number; keys: HeavyKeys }[] = []

  /** Counts a hit, and gives what is kept of its key. */
  count(key: string, now: number): KeyCount {
    const minute = Math.floor(now / 60_000)
    let newest = this.#minutes.at(-1)
    if (newest?.minute !== minute) {
      newest = { minute, keys: new HeavyKeys() }
      this.#minutes.push(newest)
      if (this.#minutes.length > RECENT_MINUTES) this.#minutes.shift()
    }
    return newest.keys.count(shortened(key))
  }

  /** The keys with the most hits, those first; of equal ones in the order of their texts, so that rows stay in place. */
  top(most: number, now: number): RecentKey[] {
    const oldest = Math.floor(now / 60_000) - RECENT_MINUTES
    const sums = new Map<string, RecentKey>()
    for (const { minute, keys } of this.#minutes) {
      if (minute <= oldest) continue
      for (const { key, hits, denied, fill } of keys.all()) {
        const sum = sums.get(key)
        sums.set(key, {
          key,
          cut: isCut(key),
          hits: hits + (sum?.hits ?? 0),
          denied: denied + (sum?.denied ?? 0),
          // Later minutes come later.
          fill: fill ?? sum?.fill ?? null,
        })
      }
    }
    return [...sums.values()].sort((a, b) => b.hits - a.hits || (a.key < b.key ? -1 : 1)).slice(0, most)
  }
}

/** Longer than any key that is kept whole, so that none can look like it. */
function shortened(key: string): string {
  if (key.length <= LONGEST_KEY) return key
  const digest = createHash('sha256').update(key).digest('base64url')
  // Joined, not added: a sum of strings refers to its parts, and would keep the whole key in memory.
  return [key.slice(0, LONGEST_KEY).toWellFormed(), digest].join('…')
}

const isCut = (key: string): boolean => key.length > LONGEST_KEY
