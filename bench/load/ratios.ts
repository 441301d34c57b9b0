import type { Contender } from '../contenders/contender.js'
import type { Entry } from './compare.js'
import { measured, P50, RATE } from './entry-table.js'
import { ratioOf, spreadOf } from './spread.js'

/** @throws RangeError when the contender took no part. */
export function entryOf(entries: readonly Entry[], contender: Contender): Entry {
  const entry = entries.find((each) => each.contender === contender)
  if (entry === undefined) throw new RangeError(`Expected ${contender.name} among the entries`)
  return entry
}

/** Which of two decides more a second. */
export function fasterOf(a: Entry, b: Entry): Entry {
  return spreadOf(measured(a, RATE)).median >= spreadOf(measured(b, RATE)).median ? a : b
}

/** How many decisions a second the one makes for each of the other. */
export const rateRatio = (a: Entry, b: Entry): number => ratioOf(measured(a, RATE), measured(b, RATE))

/** How long the one takes, at the median, for each millisecond of the other. */
export const p50Ratio = (a: Entry, b: Entry): number => ratioOf(measured(a, P50), measured(b, P50))
