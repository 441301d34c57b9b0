import { type Key, storedForm } from '../../limiter/storage-key.js'

/** What a stored key tells by itself: see `storageKey`. */
export interface StoredKey {
  /** As it is stored. */
  readonly stored: string
  /** What comes before the separator: the limiter's name, and `@` and the window where that is part of the counter. */
  readonly namespace: string
  /** The limiter's name. */
  readonly limiter: string
  /** What follows the `@`; null for a sliding window. */
  readonly window: string | null
  /** `:` before a text, `[` before parts, `"` before a text that is not well-formed, `~` before a hash. */
  readonly separator: string
  /** The key as the limiter was given it; null when it cannot be told, as it is hashed or was too long. */
  readonly key: Key | null
}

/** Names have no such characters in them, so what follows one tells the form. */
const FORM = /^([A-Za-z0-9._-]{1,64})(?:@([^:["~]*))?([:["~])/

/** Only a key that was cut, and ends in its hash, is as long, in bytes. */
const CUT_BYTES = 120

/** Reads a stored key, or tells null when it is not one of ours. */
export function readStoredKey(stored: string): StoredKey | null {
  const [prefix, limiter = '', window = null, separator = ''] = FORM.exec(stored) ?? []
  if (prefix === undefined) return null
  const namespace = prefix.slice(0, -1)
  const isCut = Buffer.byteLength(stored) >= CUT_BYTES
  const key = isCut ? null : keyOf(separator, stored.slice(prefix.length))
  return { stored, namespace, limiter, window, separator, key }
}

function keyOf(separator: string, rest: string): Key | null {
  if (separator === ':') return rest
  if (separator === '~') return null
  try {
    return JSON.parse(separator + rest) as Key
  } catch {
    return null
  }
}

/** Every stored key that `key` can have in these namespaces; with a secret, as limiters with `hashKeys` store it. */
export const storedKeysOf = (key: Key, namespaces: Iterable<string>, secret: string | null): string[] =>
  Array.from(new Set(namespaces), (namespace) => storedForm(namespace, key, secret))
