import { LRUCache } from 'lru-cache'
import type { Fill } from './heavy-keys.js'
import { fillOf } from './limit-record.js'
import type { ManagedLimits } from './managed-limits.js'
import type { RecentKey } from './recent-keys.js'

/** The most keys whose fill is remembered. */
const MOST_KEYS = 2_000
/** How old it may be before it is looked up again, in milliseconds. */
const FRESH_MS = 5_000
/** The most look-ups at a time. Each is a query. */
const MOST_LOOKUPS = 10

/** A row whose fill was asked for. */
interface Wanted {
  readonly limit: string
  readonly key: string
}

/**
 * Looks up how full limits are for the keys that are shown, since what the last decision told grows old: a few keys at a
 * time, the longest unknown first, and none that is empty.
 */
export class FillLookup {
  readonly #limits: ManagedLimits
  readonly #fills = new LRUCache<string, Fill>({ max: MOST_KEYS })
  #wanted = new Map<string, Wanted & { readonly at: number }>()
  #running = false

  constructor(limits: ManagedLimits) {
    this.#limits = limits
  }

  /** What is known of a key; asks for more if that is old. */
  fill(limit: string, { key, cut, fill }: RecentKey, now: number): Fill | null {
    const id = JSON.stringify([limit, key])
    const found = this.#fills.get(id) ?? null
    const newest = found !== null && (fill === null || found.at > fill.at) ? found : fill
    const isOld = newest === null || (newest.used > 0 && newest.at < now - FRESH_MS)
    if (isOld && !cut && this.#limits.has(limit)) this.#wanted.set(id, { limit, key, at: newest?.at ?? 0 })
    return newest
  }

  /** Looks up what was asked for since the last time, unless it is still at it. Never rejects. */
  async run(): Promise<void> {
    if (this.#running) return
    this.#running = true
    const oldest = [...this.#wanted].sort(([, a], [, b]) => a.at - b.at).slice(0, MOST_LOOKUPS)
    this.#wanted = new Map()
    try {
      for (const [id, { limit, key }] of oldest) {
        const state = await this.#limits.peek(limit, key)
        if (state !== null) this.#fills.set(id, fillOf(state, Date.now()))
      }
    } catch {
      // A store that fails is shown as such, and the rows as they were.
    } finally {
      this.#running = false
    }
  }
}
