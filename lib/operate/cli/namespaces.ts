import type { Reader } from './reader.js'
import { readStoredKey } from './stored-key.js'

/** How the keys of one limiter begin, as the table has them. */
export interface Prefix {
  /** The limiter's name, and `@` and the window where that is part of the counter. */
  readonly namespace: string
  /** What follows: see `StoredKey`. */
  readonly separator: string
}

export interface Prefixes {
  readonly prefixes: readonly Prefix[]
  /** False when there were more than were looked for. */
  readonly complete: boolean
}

/** Each takes a seek and a round trip. Names that are made by request may be without number. */
const MOST_PREFIXES = 1_000

/**
 * Which limiters have keys, without knowing them: from one beginning to the next by the primary key, over all keys that
 * begin alike at once. So it takes a seek for each limiter, however many keys there are.
 *
 * @param name - only those of the limiter of that name, or of that namespace
 */
export async function findPrefixes(reader: Reader, name: string | null): Promise<Prefixes> {
  const prefixes: Prefix[] = []
  const begin = name === null ? Buffer.alloc(0) : Buffer.from(name, 'utf8')
  let from = begin
  for (let seeks = 0; seeks < MOST_PREFIXES; seeks += 1) {
    const found = await reader.firstKey(from)
    if (found === null || !found.subarray(0, begin.length).equals(begin)) return { prefixes, complete: true }
    const key = readStoredKey(found.toString('utf8'))
    if (key === null) {
      // Not a key of ours: the one behind it.
      from = Buffer.concat([found, Buffer.of(0)])
      continue
    }
    const { namespace, limiter, separator } = key
    if (name === null || name === limiter || name === namespace) prefixes.push({ namespace, separator })
    from = Buffer.from(namespace + String.fromCharCode(separator.charCodeAt(0) + 1), 'utf8')
  }
  return { prefixes, complete: false }
}
