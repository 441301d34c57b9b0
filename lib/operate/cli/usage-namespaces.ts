import { StoreError } from '../../stores/store-error.js'
import type { Reader } from './reader.js'
import { readStoredKey } from './stored-key.js'

/** Each takes a seek. */
const MOST_SEEKS = 1_000

/** The limiters of which usage is kept: their keys may have been swept since. A seek for each, by primary key. */
export async function usageNamespaces(reader: Reader): Promise<string[]> {
  const namespaces = new Set<string>()
  let from = Buffer.alloc(0)
  for (let seeks = 0; seeks < MOST_SEEKS; seeks += 1) {
    const found = await firstUsed(reader, from)
    if (found === null) break
    const key = readStoredKey(found.toString('utf8'))
    if (key === null) {
      from = Buffer.concat([found, Buffer.of(0)])
      continue
    }
    namespaces.add(key.namespace)
    from = Buffer.from(key.namespace + String.fromCharCode(key.separator.charCodeAt(0) + 1), 'utf8')
  }
  return [...namespaces]
}

async function firstUsed(reader: Reader, from: Buffer): Promise<Buffer | null> {
  try {
    const [row] = await reader.query(
      `-- the first key from here on of which usage is kept: one seek in the primary key
SELECT rkey
FROM rate_usage
WHERE rkey >= ?
ORDER BY rkey, slice_ts
LIMIT 1`,
      [from],
    )
    return row === undefined ? null : Buffer.from(row[0] as Uint8Array)
  } catch (error) {
    if (isWithoutTable(error)) return null
    throw error
  }
}

/** No such table, or one that this user may not see: then a store of his keeps no usage. */
function isWithoutTable(error: unknown): boolean {
  const { errno, message } = ((error as StoreError).cause ?? {}) as { errno?: unknown; message?: unknown }
  return (
    error instanceof StoreError && (errno === 1146 || errno === 1142 || /no such table/.test(String(message)))
  )
}
