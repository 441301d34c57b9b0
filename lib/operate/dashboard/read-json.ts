import type { Request } from 'express'

/** The most bytes of a body: room for a key as long as a request's headers can be, even if all of it is escaped. */
const MOST_BYTES = 128 * 1024

/**
 * The JSON object in a request's body, or null when there is none: another type, not JSON, or too long. Reads it itself
 * unless the application has already.
 */
export async function readJson(req: Request): Promise<Record<string, unknown> | null> {
  if (!req.is('application/json')) return null
  const body: unknown = req.body
  if (isObject(body)) return body
  if (req.readableEnded) return null
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    // Not destroyed, so that who sent too much can still be told.
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      bytes += chunk.length
      if (bytes > MOST_BYTES) return null
      chunks.push(chunk)
    }
    const parsed: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'))
    return isObject(parsed) ? parsed : null
  } catch {
    // Not JSON, or broken off.
    return null
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
