import { AsyncLocalStorage } from 'node:async_hooks'
import { LRUCache } from 'lru-cache'
import type { Decision } from '../limiter/decision.js'

/** A hit on its way through express-rate-limit. */
export interface TakenHit {
  readonly key: string
  /** What it took; null when it was refused. */
  decision: Decision | null
  /** Whether it was asked for back. */
  asked: boolean
}

interface KnownKey {
  /** The newest hits, oldest first. */
  readonly hits: TakenHit[]
  /** When the newest of them stops counting, on the monotonic clock. */
  until: number
}

/** The most keys, and the most hits of each, that are remembered for who asks by key alone: 14 MB. */
const MOST_KEYS = 5000
const MOST_HITS = 4

/**
 * The hit that each store took for the request under way. One for all stores: Node.js 20 copies every storage that was
 * ever entered into every promise, so that with 100 of them 200,000 promises took 31 s, and with one 1.4 s.
 */
const hitsOfRequest = new AsyncLocalStorage<ReadonlyMap<TakenHits, TakenHit>>()

/**
 * Which hit `decrement(key)` means: express-rate-limit gives no more than the key, and several requests with one key
 * may be under way.
 *
 * It calls `decrement` from the asynchronous context in which it called `increment`, so the hit travels there. Where
 * there is none, the newest hit of the key is meant that this process took and has not given back.
 */
export class TakenHits {
  readonly #byRequest: boolean
  readonly #keys = new LRUCache<string, KnownKey>({ max: MOST_KEYS })

  /** @param byRequest - whether to follow requests, which costs every `await` of the process 0.7 µs on Node.js 20 */
  constructor(byRequest: boolean) {
    this.#byRequest = byRequest
  }

  /** A hit that is about to be decided. To be called before anything is awaited, or the caller's context has no part in it. */
  begin(key: string): TakenHit {
    const hit: TakenHit = { key, decision: null, asked: false }
    // Not `run`: what comes after `increment` is not ours to call. A new map: the old one is the outer contexts' too.
    if (this.#byRequest) hitsOfRequest.enterWith(new Map(hitsOfRequest.getStore()).set(this, hit))
    return hit
  }

  /**
   * The hit was counted.
   *
   * @param until - when it stops counting, on the monotonic clock, in milliseconds
   */
  took(hit: TakenHit, decision: Decision, until: number): void {
    hit.decision = decision
    const known = this.#keys.get(hit.key) ?? { hits: [], until }
    known.hits.push(hit)
    if (known.hits.length > MOST_HITS) known.hits.shift()
    known.until = until
    this.#keys.set(hit.key, known)
  }

  /** What is to be given back of a key; null when there is nothing. */
  giveBack(key: string): Decision | null {
    const known = this.#keys.get(key)
    const mine = hitsOfRequest.getStore()?.get(this)
    const hit = mine?.key === key && !mine.asked ? mine : known?.hits.at(-1)
    if (hit === undefined) return null
    hit.asked = true
    const place = known?.hits.indexOf(hit) ?? -1
    if (place >= 0) known?.hits.splice(place, 1)
    return hit.decision
  }

  /** Whether hits of this key were taken here, in a window that is not over. */
  knows(key: string): boolean {
    return (this.#keys.peek(key)?.until ?? 0) > performance.now()
  }

  /** The key was reset. */
  forget(key: string): void {
    this.#keys.delete(key)
  }

  forgetAll(): void {
    this.#keys.clear()
  }
}
