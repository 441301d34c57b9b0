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

/** The hits of each key. */
export function byKey(sightings: readonly Sighting[]): Map<string, Sighting[]> {
  const lists = new Map<string, Sighting[]>()
  for (const sighting of sightings) {
    const list = lists.get(sighting.key)
    if (list === undefined) lists.set(sighting.key, [sighting])
    else list.push(sighting)
  }
  return lists
}

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
export function checkSightings(
  sightings: readonly Sighting[],
  limit: number,
  windowMicros: number,
): string[] {
  const faults: string[] = []
  for (const [key, list] of byKey(sightings)) {
    const admitted = list.filter(({ outcome }) => outcome === 'admitted')
    const admittedSent = ascending(admitted.map(({ sent }) => sent))
    const admittedAnswered = ascending(admitted.map(({ answered }) => answered))
    for (const begin of admittedSent) {
      // At least so many: one that was sent before and answered within is left out.
      const until = begin + windowMicros - CLOCKS_APART
      const inside = countBelow(admittedAnswered, until + 1) - countBelow(admittedSent, begin)
      if (inside > limit)
        faults.push(`${key}: ${inside} admitted of ${limit}, by the callers' clock from ${begin} on`)
    }

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
