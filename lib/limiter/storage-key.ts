import { createHash, createHmac } from 'node:crypto'
import { optionError } from '../stores/option-error.js'
import type { Policy } from '../stores/store.js'

/** What a hit can be charged to: a text, or several parts that are kept apart. */
export type Key = string | readonly string[]

/** A key as its store has it, in the column `rkey`. */
export interface StoredKey {
  /** The name of the limit. */
  readonly name: string
  readonly key: string
  /** Whether admitted hits on it are in the event log. */
  readonly isLogged: boolean
}

/** Longest key that is stored as it is, in bytes of UTF-8. Longer ones take exactly one byte more. */
const LONGEST_PLAIN = 119
/** Bytes of a SHA-256 in base64url. */
const DIGEST_LENGTH = 43

/**
 * The stored form of a key: readable, at most 120 bytes of UTF-8, and different for different names, algorithms and
 * keys, so that no two limits share a counter unless they mean to.
 *
 * `name:text` for a text, `name[…]` for parts, `name"…` for a text that is not well-formed Unicode. Names have none
 * of `:`, `[`, `"`, `~` and `@` in them, so what follows the name tells the form. A fixed window's counter belongs to its
 * length too: `name@seconds:text`; one of a calendar to its unit, first day and time zone, as in
 * `name@month.15/europe/berlin:text`. A form longer than 119 bytes is cut and ends in `#` and its SHA-256; it then has
 * 120 bytes, which no other form has.
 *
 * With a secret, `name~` and the HMAC-SHA256 of that form, so that neither an address nor an e-mail is at rest. What stands
 * before it is cut where it is too long: the hash tells it apart.
 *
 * @throws TypeError for an empty text, no parts, or anything that is neither a text nor an array of texts.
 */
export function storageKey(policy: Policy, key: Key, secret: string | null = null): string {
  return storedForm(namespaceOf(policy), key, secret)
}

/** What stands before `:`, `[`, `"` and `~` in the stored keys of a policy. */
export const namespaceOf = (policy: Policy): string =>
  policy.algorithm === 'fixed-window'
    ? `${policy.name}@${policy.calendar?.id ?? policy.windowSeconds}`
    : policy.name

/** The same for a namespace. */
export function storedForm(namespace: string, key: Key, secret: string | null): string {
  const text = namespace + encode(key)
  if (secret !== null) {
    const digest = createHmac('sha256', secret).update(text).digest('base64url')
    return `${namespace.slice(0, LONGEST_PLAIN - 1 - DIGEST_LENGTH)}~${digest}`
  }
  // No UTF-16 unit takes more than three bytes of UTF-8.
  if (text.length * 3 <= LONGEST_PLAIN || Buffer.byteLength(text) <= LONGEST_PLAIN) return text
  const digest = createHash('sha256').update(text).digest('base64url')
  return `${cut(text, LONGEST_PLAIN - DIGEST_LENGTH)}#${digest}`
}

/** The key as a person reads it in decisions and in the status. */
export const keyText = (key: Key): string => (typeof key === 'string' ? key : JSON.stringify(key))

function encode(key: unknown): string {
  if (typeof key === 'string') {
    if (key === '') throw optionError('key', 'a text that is not empty', key)
    // UTF-8 has no form for half a surrogate pair: all of them would become one character, and their keys one key.
    return key.isWellFormed() ? `:${key}` : JSON.stringify(key)
  }
  if (!Array.isArray(key) || key.length === 0 || !Array.from(key).every((part) => typeof part === 'string')) {
    throw optionError('key', 'a text or an array of texts', key)
  }
  return JSON.stringify(key)
}

/** The first `bytes` bytes of a well-formed text, filled up with `#` where a character would be cut in half. */
function cut(text: string, bytes: number): string {
  const head = Buffer.from(text.slice(0, bytes), 'utf8')
    .subarray(0, bytes)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')
  return head + '#'.repeat(bytes - Buffer.byteLength(head))
}
