import type { StoreInspection } from '../store.js'
import type { Statements } from './statements.js'

/** Up to so many rows a table is counted: SQLite stands in the way of the whole process meanwhile. */
const MOST_COUNTED = 10_000

/** Tells how large the tables are, by reads that take no lock. */
export function inspectTables(
  { countKeys, countEvents, fileSize, sweepUntil }: Statements,
  now: number,
): StoreInspection {
  const keys = numberIn(countKeys.get(MOST_COUNTED + 1))
  const events = numberIn(countEvents.get(MOST_COUNTED + 1))
  const isExact = keys <= MOST_COUNTED && events <= MOST_COUNTED
  // A sweep that has ended leaves its end there; before the first one there is nothing, and during one its lease.
  const until = numberIn(sweepUntil.get())
  return {
    keys: Math.min(keys, MOST_COUNTED),
    events: Math.min(events, MOST_COUNTED),
    precision: isExact ? 'exact' : 'at-least',
    bytes: numberIn(fileSize.get()),
    sweptAt: until > 0 && until <= now ? Math.floor(until / 1000) : null,
    connections: null,
  }
}

const numberIn = (row: unknown): number => Number((row as { n?: unknown } | undefined)?.n ?? 0)
