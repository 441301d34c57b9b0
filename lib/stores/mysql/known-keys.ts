import { LRUCache } from 'lru-cache'
import type { Head } from '../account.js'
import { DatabaseClock } from './database-clock.js'
import { KnownKey } from './known-key.js'

/** The most keys that are remembered: some 300 bytes each, and up to 500 more for each window's events. */
const ENTRIES = 20_000
/** After so many keys in a row that were new to the database as well, the next one is taken to be. */
const NEW_IN_A_ROW = 8

/**
 * What this process remembers of the keys it has decided, so as to ask less: which keys exist, their heads, and the
 * first events of their windows. What is decided rests on none of it unchecked: a head is read, or compared, under its
 * lock, and an event is only believed while the head's `logVersion` says that the log has not been rewritten.
 */
export class KnownKeys {
  readonly clock = new DatabaseClock()
  readonly #keys = new LRUCache<string, KnownKey>({ max: ENTRIES })

  /** How many keys in a row that were new to this process were new to the database as well. */
  #newInARow = 0

  /** Whether a key that this process does not know is likely to be new to the database as well. */
  get expectsNew(): boolean {
    return this.#newInARow >= NEW_IN_A_ROW
  }

  get(key: string): KnownKey | undefined {
    return this.#keys.get(key)
  }

  /** A key that this process did not know, as it was read under its lock, or with an empty head as it was created. */
  add(key: string, head: Head): KnownKey {
    this.#newInARow = head.last === 0 ? this.#newInARow + 1 : 0
    const known = new KnownKey(head)
    this.#keys.set(key, known)
    return known
  }

  /** Is not there any more. */
  forget(key: string): void {
    this.#keys.delete(key)
  }
}
