import type { Denial } from './record-denials.js'

/** Cost that was admitted for a key at an instant of the database's clock, in microseconds. */
export interface Admission {
  readonly key: string
  readonly ts: number
  readonly hits: number
  /** When it was given back or forgotten, if it was: not before the one, not after the other. */
  readonly gone?: { readonly from: number; readonly to: number }
}

/** Cost that may have been admitted at an instant between two, or not: nobody was told. In microseconds. */
export interface Unknown {
  readonly key: string
  readonly from: number
  readonly to: number
  readonly hits: number
}

/** So much counts from an instant on, and until before another. */
interface Span {
  readonly from: number
  readonly until: number
  readonly hits: number
}

/**
 * Looks for a window that certainly held more than its limit, and for a denial that the log certainly does not justify.
 * Returns what it found, in words; nothing when the history is exact. Takes the time of sorting it.
 */
export function checkHistory(
  admissions: readonly Admission[],
  denials: readonly Denial[],
  limit: number,
  windowMicros: number,
  unknown: readonly Unknown[] = [],
): string[] {
  const faults: string[] = []
  const logs = grouped(admissions)
  for (const [key, log] of logs) {
    const certain = log.map(({ ts, hits, gone }) =>
      spanOf(ts, Math.min(ts + windowMicros, gone?.from ?? Number.POSITIVE_INFINITY), hits),
    )
    const times = [...new Set(log.map(({ ts }) => ts))]
    for (const [at, inside] of sumsAt(certain, times))
      if (inside > limit) faults.push(`${key}: ${inside} of ${limit} inside the window that ends at ${at}`)
  }

  const unknownOf = grouped(unknown)
  for (const [key, list] of grouped(denials)) {
    const possible = (logs.get(key) ?? []).map(({ ts, hits, gone }) =>
      spanOf(ts, Math.min(ts + windowMicros, (gone?.to ?? Number.POSITIVE_INFINITY) + 1), hits),
    )
    const maybe = (unknownOf.get(key) ?? []).map(({ from, to, hits }) =>
      spanOf(from, to + windowMicros, hits),
    )
    const times = list.map(({ at }) => at)
    for (const [at, inside] of sumsAt([...possible, ...maybe], times))
      if (inside < limit) faults.push(`${key}: denied at ${at} with ${inside} of ${limit} inside the window`)
  }
  return faults
}

/** What may have been gone before it began counts never. */
const spanOf = (from: number, until: number, hits: number): Span => ({
  ...{ from, hits },
  until: Math.max(from, until),
})

/** What counts at each of the times, in their order: one walk along all three. */
function* sumsAt(spans: readonly Span[], times: number[]): Generator<[at: number, sum: number]> {
  const begins = spans.toSorted((a, b) => a.from - b.from)
  const ends = spans.toSorted((a, b) => a.until - b.until)
  let begun = 0
  let ended = 0
  let sum = 0
  for (const at of times.sort((a, b) => a - b)) {
    for (let span = begins[begun]; span !== undefined && span.from <= at; span = begins[begun]) {
      sum += span.hits
      begun += 1
    }
    for (let span = ends[ended]; span !== undefined && span.until <= at; span = ends[ended]) {
      sum -= span.hits
      ended += 1
    }
    yield [at, sum]
  }
}

/** The entries of each key. */
export function grouped<Entry extends { readonly key: string }>(
  entries: readonly Entry[],
): Map<string, Entry[]> {
  const lists = new Map<string, Entry[]>()
  for (const entry of entries) {
    const list = lists.get(entry.key)
    if (list === undefined) lists.set(entry.key, [entry])
    else list.push(entry)
  }
  return lists
}
