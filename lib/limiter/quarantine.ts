import { inBackground } from '../stores/before-abort.js'
import type { Hit, Store } from '../stores/store.js'
import { StoreError } from '../stores/store-error.js'
import { type Breaker, storeErrorOf } from './breaker.js'

/** How long the test of one key may take, in milliseconds. It may have to connect. */
const TEST_MS = 250
/** The test of several may take so many times as long as the last that passed, and at least this long, in milliseconds. */
const PATIENCE = 10
const SHORTEST_TEST_MS = 50
/** How long after a test a key that was found locked is tested again, in milliseconds. */
const AGAIN_MS = 400
/** The most keys that are kept apart. With more, it is no key that is the matter. */
const MOST_KEYS = 5000

/**
 * Keeps keys apart that may be locked by somebody else for longer than a decision can wait: one such key fails every
 * batch that it is in, and so the hits on all other keys of it.
 *
 * The keys of a batch that was not decided in time are suspects. While their hits wait, they are tested in groups:
 * what passes is free again, what does not is halved, until a locked key is alone. Hits on that are refused at once, and
 * it is tested again and again until it is free.
 */
export class Quarantine {
  readonly #store: Store
  readonly #breaker: Breaker
  readonly #onChange: () => void
  readonly #suspects = new Set<string>()
  readonly #locked = new Set<string>()
  #groups: (readonly string[])[] = []
  #testing = false
  /** How long the test of several keys may take: only halves them, so that it may be wrong. */
  #groupTestMs = TEST_MS
  #timer: NodeJS.Timeout | null = null

  /** @param onChange - called when hits that waited may be decided, or are to be refused */
  constructor(store: Store, breaker: Breaker, onChange: () => void) {
    this.#store = store
    this.#breaker = breaker
    this.#onChange = onChange
  }

  get isEmpty(): boolean {
    return this.#suspects.size === 0
  }

  has(key: string): boolean {
    return this.#suspects.has(key)
  }

  /** Whether a hit has to wait, because one of its keys is a suspect. */
  holds({ charges }: Hit): boolean {
    return charges.some(({ key }) => this.#suspects.has(key))
  }

  /** Why a hit cannot be decided, or null: one of its keys is locked. */
  refusal({ charges }: Hit): StoreError | null {
    return charges.some(({ key }) => this.#locked.has(key)) ? lockedError() : null
  }

  /** The keys of a batch that was not decided in time. */
  suspect(keys: Iterable<string>): void {
    const group: string[] = []
    for (const key of new Set(keys)) {
      if (this.#suspects.has(key) || this.#suspects.size >= MOST_KEYS) continue
      this.#suspects.add(key)
      group.push(key)
    }
    this.#queue(group)
    void this.#test()
  }

  async #test(): Promise<void> {
    if (this.#testing) return
    this.#testing = true
    for (let group = this.#groups.shift(); group !== undefined; group = this.#groups.shift()) {
      const isLocked = this.#breaker.refusal === null && (await this.#isLocked(group))
      // The store is down: that is the matter, and nobody asks it.
      if (this.#breaker.refusal !== null) this.#clear()
      else if (!isLocked) this.#release(group)
      else if (group.length > 1) this.#queue(group)
      else this.#lock(group[0] as string)
      this.#onChange()
    }
    this.#testing = false
  }

  async #isLocked(keys: readonly string[]): Promise<boolean> {
    const begin = performance.now()
    const millis = keys.length > 1 ? this.#groupTestMs : TEST_MS
    try {
      await inBackground(millis, (signal) => this.#store.probe(signal, keys))
      const took = performance.now() - begin
      this.#groupTestMs = Math.min(Math.max(PATIENCE * took, SHORTEST_TEST_MS), TEST_MS)
      return false
    } catch (error) {
      const { code } = storeErrorOf(error)
      if (code !== 'ERR_STORE_TIMEOUT' && code !== 'ERR_STORE_CONFLICT') return false
      // It may as well be the whole store.
      this.#breaker.doubt()
      return true
    }
  }

  /** To be tested in halves. */
  #queue(keys: readonly string[]): void {
    const middle = Math.ceil(keys.length / 2)
    for (const half of [keys.slice(0, middle), keys.slice(middle)])
      if (half.length > 0) this.#groups.push(half)
  }

  #release(keys: readonly string[]): void {
    for (const key of keys) {
      this.#suspects.delete(key)
      this.#locked.delete(key)
    }
  }

  #clear(): void {
    this.#suspects.clear()
    this.#locked.clear()
    this.#groups = []
  }

  #lock(key: string): void {
    this.#locked.add(key)
    if (this.#timer !== null) return
    this.#timer = setTimeout(
      () => {
        this.#timer = null
        for (const locked of this.#locked) this.#groups.push([locked])
        void this.#test()
      },
      AGAIN_MS * (0.8 + Math.random() * 0.4),
    )
    this.#timer.unref()
  }
}

const lockedError = (): StoreError =>
  new StoreError('ERR_STORE_CONFLICT', 'Somebody else keeps a row of the key locked')
