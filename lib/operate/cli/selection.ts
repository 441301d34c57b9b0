import type { Key } from '../../limiter/storage-key.js'
import { findPrefixes, type Prefix } from './namespaces.js'
import type { KeyRow, Reader } from './reader.js'
import { storedKeysOf } from './stored-key.js'
import { UsageError } from './usage-error.js'

/** Which keys a command is about, as the command line says it. */
export interface Selection {
  readonly key: string
  /** The key is a JSON array: a key of several parts. */
  readonly parts?: boolean | undefined
  /** The key is the stored form. */
  readonly stored?: boolean | undefined
  /** Only this limiter. */
  readonly name?: string | undefined
  /** Limiters with `hashKeys`: the secret is in RATE_LIMIT_HASH_KEYS. */
  readonly hashed?: boolean | undefined
}

/** The stored keys that a selection can mean. */
export interface Candidates {
  readonly stored: readonly string[]
  readonly prefixes: readonly Prefix[]
  /** False when there were more limiters than were looked at. */
  readonly complete: boolean
}

export const SECRET_VARIABLE = 'RATE_LIMIT_HASH_KEYS'

/**
 * The key that was meant.
 *
 * @throws UsageError for an empty one, and for `--parts` with anything but a JSON array of texts
 */
export function selectedKey({ key, parts = false }: Pick<Selection, 'key' | 'parts'>): Key {
  if (key === '') throw new UsageError('Expected KEY to be a text that is not empty')
  if (!parts) return key
  let value: unknown
  try {
    value = JSON.parse(key)
  } catch {
    value = null
  }
  if (!Array.isArray(value) || value.length === 0 || !value.every((part) => typeof part === 'string')) {
    throw new UsageError(`Expected KEY with --parts to be a JSON array of texts, as in '["claim","42"]'`)
  }
  return value
}

/** @throws UsageError when `--hashed` is given without a secret, or together with `--stored` */
export function selectedSecret({ hashed = false, stored = false }: Selection): string | null {
  if (!hashed) return null
  if (stored) throw new UsageError('Give one of --stored and --hashed')
  const secret = process.env[SECRET_VARIABLE] ?? ''
  if (secret === '') {
    throw new UsageError(
      `--hashed needs the secret of the limiter's hashKeys in the variable ${SECRET_VARIABLE}`,
    )
  }
  return secret
}

/** Finds out which limiters there are, and what the key is called in each. */
export async function findCandidates(reader: Reader, selection: Selection): Promise<Candidates> {
  const key = selectedKey(selection)
  const secret = selectedSecret(selection)
  if (selection.stored) return { stored: [selection.key], prefixes: [], complete: true }
  const { prefixes, complete } = await findPrefixes(reader, selection.name ?? null)
  const fitting = prefixes.filter(({ separator }) => (separator === '~') === (secret !== null))
  return {
    stored: storedKeysOf(
      key,
      fitting.map(({ namespace }) => namespace),
      secret,
    ),
    prefixes,
    complete,
  }
}

/** The rows of a selection's keys that exist. */
export async function selectedRows(reader: Reader, candidates: Candidates): Promise<KeyRow[]> {
  const rows: KeyRow[] = []
  for (let begin = 0; begin < candidates.stored.length; begin += 200) {
    rows.push(...(await reader.rows(candidates.stored.slice(begin, begin + 200))))
  }
  return rows
}

/** The limiters whose keys are hashed, so that a key in plain finds nothing there. */
export const hashedLimiters = ({ prefixes }: Candidates): string[] => [
  ...new Set(prefixes.filter(({ separator }) => separator === '~').map(({ namespace }) => namespace)),
]
