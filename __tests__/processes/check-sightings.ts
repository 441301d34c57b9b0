import { grouped } from './check-history.js'

/** A hit as its caller saw it, in microseconds of the machine's clock: it was decided between the two times. */
export interface Sighting {
  readonly key: string
  readonly sent: number
  readonly answered: number
  /** Undecided: the store failed. It may have counted the hit or not. */
  readonly outcome: 'admitted' | 'refused' | 'undecided'
}

/** How far the clocks may be apart of those who decide and the one who watches, in microseconds: nodes of a cluster. */
const CLOCKS_APART = 20_000

/** How much later than its answer a hit may still be counted that the store did not decide, in microseconds. */
const LATE_COMMIT = 10_000_000

/** How many of the sorted numbers are below a bound. */
function countBelow(sorted: readonly number[], bound: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] as number) < bound) low = middle + 1
    else high = middle
  }
  return low
}

const ascending = (numbers: number[]): number[] => numbers.sort((a, b) => a - b)

/**
 * Looks for a window that certainly held more than its limit, and for a refusal that was certainly wrong, whenever the
 * hits were decided between being sent and being answered. Returns what it found, in words.
 */
export const checkSightings = (
  sightings: readonly Sighting[],
  limit: number,
  windowMicros: number,
): string[] => [
  ...findOverfull(sightings, limit, windowMicros, CLOCKS_APART),
  ...findWrongRefusals(sightings, limit, windowMicros),
]

/**
 * Windows that certainly held more than their limit, in words.
 *
 * @param clocksApart - how far the clocks may be apart of those who decide, in microseconds
 */
export function findOverfull(
  sightings: readonly Sighting[],
  limit: number,
  windowMicros: number,
  clocksApart: number,
): string[] {
  const faults: string[] = []
  for (const [key, list] of grouped(sightings)) {
    const admitted = list.filter(({ outcome }) => outcome === 'admitted')
    const sent = ascending(admitted.map((each) => each.sent))
    const answered = ascending(admitted.map((each) => each.answered))
    for (const begin of sent) {
      // At least so many: one that was sent before and answered within is left out.
      const until = begin + windowMicros - clocksApart
      const inside = countBelow(answered, until) - countBelow(sent, begin)
      if (inside > limit)
        faults.push(`${key}: ${inside} admitted of ${limit}, by the callers' clock from ${begin} on`)
    }
  }
  return faults
}

function findWrongRefusals(sightings: readonly Sighting[], limit: number, windowMicros: number): string[] {
  const faults: string[] = []
  for (const [key, list] of grouped(sightings)) {
    const maybe = list.filter(({ outcome }) => outcome !== 'refused')
    const maybeSent = ascending(maybe.map(({ sent }) => sent))
    const maybeAnswered = ascending(
      maybe.map(({ answered, outcome }) => (outcome === 'undecided' ? answered + LATE_COMMIT : answered)),
    )
    for (const { sent, answered, outcome } of list) {
      if (outcome !== 'refused') continue
      const gone = countBelow(maybeAnswered, sent - windowMicros - CLOCKS_APART)
      const inside = countBelow(maybeSent, answered + CLOCKS_APART) - gone
      if (inside < limit) {
        faults.push(
          `${key}: refused with at the most ${inside} of ${limit} in the window, by the callers' clock at ${sent}`,
        )
      }
    }
  }
  return faults
}
