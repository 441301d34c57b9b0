import { type Estimate, estimate, exactly } from './key-state.js'
import { findPrefixes } from './namespaces.js'
import type { Bookmark, KeyRow, Reader } from './reader.js'

/** By what keys are ranked: see the help of `top`. */
export const ORDERS = ['used', 'rate', 'recent', 'blocked'] as const
export type Order = (typeof ORDERS)[number]

export interface RankOptions {
  readonly by: Order
  /** How many keys are wanted. */
  readonly count: number
  /** How many keys are looked at, at most. */
  readonly scan: number
  /** Only those of this limiter. */
  readonly name: string | null
}

export interface Ranking {
  readonly estimates: readonly Estimate[]
  readonly scanned: number
  /** Whether every key that still counts was looked at. */
  readonly isComplete: boolean
}

/** Rows a statement reads. */
const ROWS_A_STATEMENT = 5_000
/** The most windows that are looked up, in the event log, of keys that may belong to the first ones. */
const MOST_LOOKUPS = 1_000
/** How many are looked up at once. */
const LOOKUPS_AT_ONCE = 50

/**
 * The first keys by some order. Which of the keys that were looked at come first is exact: a row tells what its key
 * counts at most, and those that could be among the first are looked up, in order, until no other can be.
 */
export async function rankKeys(reader: Reader, options: RankOptions, now: number): Promise<Ranking> {
  const { by, count, scan, name } = options
  const value = VALUES[by](now)
  const kept: Estimate[] = []
  let scanned = 0
  let isComplete = true
  const rows = name === null ? lastingRows(reader, now, scan) : limiterRows(reader, name, scan)
  for await (const some of rows) {
    for (const row of some) {
      scanned += 1
      if (scanned > scan) {
        isComplete = false
        break
      }
      if (row.expires >= now) kept.push(estimate(row, now))
    }
  }
  const sorted = kept.filter((each) => value(each) > 0).sort((a, b) => value(b) - value(a))
  const estimates = await firstOf(reader, sorted, count, value)
  return { estimates, scanned: Math.min(scanned, scan), isComplete }
}

/** What an order goes by: the higher the earlier; what is not above 0 is left out. */
const VALUES: Record<Order, (now: number) => (each: Estimate) => number> = {
  used: () => (each) => each.atMost,
  rate: () => (each) => (each.windowMicros === 0 ? 0 : each.atMost / each.windowMicros),
  recent: () => (each) => each.row.last,
  blocked: (now) => (each) => each.row.blocked - now,
}

async function firstOf(
  reader: Reader,
  sorted: readonly Estimate[],
  count: number,
  value: (each: Estimate) => number,
): Promise<Estimate[]> {
  let first: Estimate[] = []
  for (let begin = 0; begin < sorted.length && begin < MOST_LOOKUPS; begin += LOOKUPS_AT_ONCE) {
    const some = sorted.slice(begin, begin + LOOKUPS_AT_ONCE)
    const exact = (await exactly(reader, some)).filter((each) => value(each) > 0)
    first = [...first, ...exact].sort((a, b) => value(b) - value(a)).slice(0, count)
    const next = sorted[begin + LOOKUPS_AT_ONCE]
    const last = first[count - 1]
    // The others count less, even at most.
    if (last !== undefined && (next === undefined || value(last) >= value(next))) break
  }
  return first
}

/** One row more than `scan`, so that it shows whether there are more. */
async function* lastingRows(reader: Reader, now: number, scan: number): AsyncGenerator<KeyRow[]> {
  let after: Bookmark | null = null
  for (let left = scan + 1; left > 0; ) {
    const rows: KeyRow[] = await reader.lasting(after, now, Math.min(left, ROWS_A_STATEMENT))
    yield rows
    if (rows.length < Math.min(left, ROWS_A_STATEMENT)) return
    after = rows.at(-1) ?? null
    left -= rows.length
  }
}

async function* limiterRows(reader: Reader, name: string, scan: number): AsyncGenerator<KeyRow[]> {
  const { prefixes } = await findPrefixes(reader, name)
  let left = scan + 1
  for (const { namespace, separator } of prefixes) {
    let from = Buffer.from(namespace + separator, 'utf8')
    const to = Buffer.from(namespace + String.fromCharCode(separator.charCodeAt(0) + 1), 'utf8')
    while (left > 0) {
      const most = Math.min(left, ROWS_A_STATEMENT)
      const rows = await reader.range(from, to, most)
      yield rows
      left -= rows.length
      const last = rows.at(-1)
      if (rows.length < most || last === undefined) break
      from = Buffer.concat([last.bytes, Buffer.of(0)])
    }
  }
}
