import type { Denial } from './record-denials.js'

/** Cost that was admitted for a key at an instant of the database's clock, in microseconds. */
export interface Admission {
  readonly key: string
  readonly ts: number
  readonly hits: number
}

/**
 * Looks for a window that held more than its limit, and for a denial that the log does not justify. Returns what it
 * found, in words; nothing when the history is exact.
 */
export function checkHistory(
  admissions: readonly Admission[],
  denials: readonly Denial[],
  limit: number,
  windowMicros: number,
): string[] {
  const logs = new Map<string, Admission[]>()
  for (const admission of admissions) logs.set(admission.key, [...(logs.get(admission.key) ?? []), admission])
  for (const log of logs.values()) log.sort((a, b) => a.ts - b.ts)

  const insideAt = (key: string, at: number): number =>
    (logs.get(key) ?? [])
      .filter(({ ts }) => ts > at - windowMicros && ts <= at)
      .reduce((sum, { hits }) => sum + hits, 0)

  const faults: string[] = []
  for (const { key, ts } of admissions) {
    const inside = insideAt(key, ts)
    if (inside > limit) faults.push(`${key}: ${inside} of ${limit} inside the window that ends at ${ts}`)
  }
  for (const { key, at } of denials) {
    const inside = insideAt(key, at)
    if (inside < limit) faults.push(`${key}: denied at ${at} with ${inside} of ${limit} inside the window`)
  }
  return faults
}

/** When an admitted hit was made, on the machine's clock, in milliseconds: not before the one, not after the other. */
export interface Use {
  readonly asked: number
  readonly answered: number
}

/**
 * Looks for a window that held more than its limit of hits which certainly lie inside of it, whenever between asking and
 * answering each was decided. Returns what it found, in words.
 */
export function checkUses(uses: readonly Use[], limit: number, windowMillis: number): string[] {
  const faults: string[] = []
  for (const end of new Set(uses.map(({ answered }) => answered))) {
    const inside = uses.filter(({ asked, answered }) => asked > end - windowMillis && answered <= end).length
    if (inside > limit) faults.push(`${inside} of ${limit} inside the window that ends at ${end}`)
  }
  return faults
}
