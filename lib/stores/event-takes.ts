import type { Refund } from './store.js'

/**
 * How many of a key's newest events a hit may lie back to be given back together with hits of other keys. Each event after
 * it is written anew (5 µs on MySQL, 2 µs on MariaDB), and all the keys are locked meanwhile.
 */
export const REACH_TOGETHER = 100
/** The same for a key by itself: a tenth of a second. What lies further back stays counted, the safe side. */
export const REACH_ALONE = 20_000

/** What refunds take from one event of a key. */
export interface EventTake {
  /** Time of the event. */
  readonly at: number
  /** What is taken from it. */
  readonly cost: number
  /** What is taken from it and from all events before it: the running totals from here on are smaller by so much. */
  readonly sum: number
  /** Up to here they are: time of the next event that something is taken from. */
  readonly before: number
  /** Whether nothing is left of it. */
  readonly isGone: boolean
}

/**
 * What refunds of one key take from its events, oldest first, so that every later event is written once, however many
 * hits are given back. A refund of more than its event has left is passed over.
 *
 * @param refunds - of hits on one key
 * @param hitsAt - what the event of that time holds; 0 when there is none
 */
export function eventTakes(refunds: readonly Refund[], hitsAt: (at: number) => number): EventTake[] {
  const taken = new Map<number, { cost: number; hits: number }>()
  for (const { at, cost } of refunds) {
    const event = taken.get(at) ?? { cost: 0, hits: hitsAt(at) }
    if (event.cost + cost > event.hits) continue
    event.cost += cost
    taken.set(at, event)
  }
  const events = [...taken].sort(([a], [b]) => a - b)
  let sum = 0
  return events.map(([at, { cost, hits }], i) => {
    sum += cost
    return { at, cost, sum, before: events[i + 1]?.[0] ?? Number.MAX_SAFE_INTEGER, isGone: cost === hits }
  })
}

/** The refunds of each key. */
export function refundsByKey(refunds: readonly Refund[]): Map<string, Refund[]> {
  const byKey = new Map<string, Refund[]>()
  for (const refund of refunds) {
    const same = byKey.get(refund.key)
    if (same === undefined) byKey.set(refund.key, [refund])
    else same.push(refund)
  }
  return byKey
}

/** Those of sliding windows, whose events are counted, and those of fixed ones. */
export const byAlgorithm = (refunds: readonly Refund[]): [sliding: Refund[], fixed: Refund[]] => {
  const isSliding = ({ policy }: Refund): boolean => policy.algorithm === 'sliding-window'
  return [refunds.filter(isSliding), refunds.filter((refund) => !isSliding(refund))]
}
