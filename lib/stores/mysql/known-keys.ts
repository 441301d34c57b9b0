import { LRUCache } from 'lru-cache'
import type { Head } from '../account.js'
import { DatabaseClock } from './database-clock.js'
import { KnownKey } from './known-key.js'

/** The most keys that are remembered: some 300 bytes each, and up to 500 more for each window's events. */
const ENTRIES = 20_000

/**
 * What this process remembers of the keys it has decided, so as to ask less: which keys exist, their heads, and the
 * first events of their windows. What is decided rests on none of it unchecked: a head is read, or compared, under its
 * lock, and an event is only believed while the head's `logVersion` says that the log has not been rewritten.
 */
export class KnownKeys {
  readonly clock = new DatabaseClock()
  readonly #keys = new LRUCache<string, KnownKey>({ max: ENTRIES })

  get(key: string): KnownKey | undefined {
    return this.#keys.get(key)
  }

  /** A key that was read under its lock. */
  add(key: string, head: Head): KnownKey {
    const known = new KnownKey(head)
    this.#keys.set(key, known)
    return known
  }

  /** Is not there any more. */
  forget(key: string): void {
    this.#keys.delete(key)
  }
}
