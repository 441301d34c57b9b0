/** One hit as its caller saw it, in milliseconds: it was decided somewhere between the two times. */
export interface Sighting {
  readonly sent: number
  readonly answered: number
  readonly admitted: boolean
}

/**
 * How many hits were certainly admitted within some window of that length. More than the limit: a sliding window was
 * not kept.
 */
export function mostWithin(sightings: readonly Sighting[], windowMillis: number): number {
  const admitted = sightings.filter((each) => each.admitted)
  const counts = admitted.map(({ sent }) => {
    const inside = admitted.filter((other) => other.sent >= sent && other.answered <= sent + windowMillis)
    return inside.length
  })
  return Math.max(0, ...counts)
}

/**
 * How many hits were denied although, whenever they were decided, fewer than `limit` admitted ones can have been in
 * the window before.
 */
export function deniedTooEarly(sightings: readonly Sighting[], windowMillis: number, limit: number): number {
  const admitted = sightings.filter((each) => each.admitted)
  const wrong = sightings.filter(({ sent, answered, admitted: passed }) => {
    if (passed) return false
    const possible = admitted.filter((other) => other.answered > sent - windowMillis && other.sent < answered)
    return possible.length < limit
  })
  return wrong.length
}
