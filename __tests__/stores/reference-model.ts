import type { Hit, Policy } from '../../lib/stores/store.js'

/** What the model says of one charge, in the words of a store's reading. */
interface Expected {
  denied: boolean
  used: number
  retryMicros: number
}

/** What the model says of one hit. */
interface ExpectedVerdict {
  readings: Expected[]
  granted: number | undefined
}

interface Log {
  last: number
  /** Time of the newest admitted cost. */
  newest: number
  /** Admitted cost, each unit or group with its time (sliding); attempts by start of window (fixed). */
  admitted: { ts: number; cost: number }[]
  attempts: Map<number, number>
}

type WindowAt = (policy: Policy, at: number) => { start: number; end: number }

/**
 * The oracle: a list of timestamps a key, and counting. Knows nothing of running totals, remembered windows,
 * pruning or transactions, so that it cannot share a mistake with them.
 */
export class ReferenceModel {
  readonly #logs = new Map<string, Log>()
  readonly #windowAt: WindowAt

  /** @param windowAt - where the windows of a fixed-window policy begin; default, at multiples of their length */
  constructor(windowAt: WindowAt = multiplesOf) {
    this.#windowAt = windowAt
  }

  decide(hits: readonly Hit[], now: number): ExpectedVerdict[] {
    // A batch is one instant: every key is decided at the clock, but never at or before its newest write.
    const instant = remembered((key) => Math.max(now, this.#log(key).last + 1))
    // And what it admits of a key is one event: at the end of its latest lease, and after all others of the key.
    const stamp = remembered((key) => {
      const leases = hits
        .filter(({ charges }) => charges.some((each) => each.key === key))
        .map(({ lease }) => lease?.micros ?? 0)
      return Math.max(instant(key) + Math.max(...leases), this.#log(key).newest + 1)
    })
    return hits.map(({ charges, cost, lease }) => {
      const used = charges.map(({ key, policy }) => this.#used(key, policy, instant(key)))
      const denied = charges.map(({ policy }, i) => (used[i] as number) + cost > policy.limit)
      const allowed = !denied.includes(true)
      const rooms = charges.map(({ policy }, i) => policy.limit - (used[i] as number))
      const granted = allowed && lease ? Math.max(cost, Math.min(lease.units, ...rooms)) : undefined
      const keys = new Map(
        charges.map((charge, i) => [charge.key, { ...charge, denied: denied[i] as boolean }]),
      )
      const expected = charges.map(({ key, policy }, i) => ({
        denied: denied[i] as boolean,
        retryMicros: denied[i] ? this.#retry(key, policy, cost, instant(key), now) : 0,
      }))
      for (const [key, charge] of keys) {
        const log = this.#log(key)
        const fixed = charge.policy.algorithm === 'fixed-window'
        if (fixed && (allowed || charge.denied)) {
          const { start } = this.#windowAt(charge.policy, instant(key))
          log.attempts.set(start, (log.attempts.get(start) ?? 0) + (granted ?? cost))
          log.last = instant(key)
        }
        if (!fixed && allowed) {
          log.newest = stamp(key)
          log.admitted.push({ ts: stamp(key), cost: granted ?? cost })
          log.last = instant(key)
        }
      }
      const readings = expected.map((each, i) => {
        const { key, policy } = charges[i] as Hit['charges'][number]
        return { ...each, used: this.#used(key, policy, instant(key)) }
      })
      return { granted, readings }
    })
  }

  refund(key: string, policy: Policy, cost: number, at: number): void {
    const log = this.#log(key)
    if (policy.algorithm === 'fixed-window') {
      const { start } = this.#windowAt(policy, at)
      const attempts = log.attempts.get(start) ?? 0
      if (attempts >= cost) log.attempts.set(start, attempts - cost)
      return
    }
    for (const event of log.admitted) {
      const taken = event.ts === at ? Math.min(event.cost, cost) : 0
      event.cost -= taken
      cost -= taken
    }
    log.admitted = log.admitted.filter((event) => event.cost > 0)
  }

  reset(key: string): void {
    this.#logs.delete(key)
  }

  /** The most cost that was ever admitted in any window that ends with an event. */
  busiest(key: string, windowMicros: number): number {
    const { admitted } = this.#log(key)
    return Math.max(
      0,
      ...admitted.map(({ ts }) => sum(admitted.filter((e) => e.ts > ts - windowMicros && e.ts <= ts))),
    )
  }

  #log(key: string): Log {
    let log = this.#logs.get(key)
    if (log === undefined) {
      log = { last: 0, newest: 0, admitted: [], attempts: new Map() }
      this.#logs.set(key, log)
    }
    return log
  }

  #used(key: string, policy: Policy, at: number): number {
    const log = this.#log(key)
    if (policy.algorithm === 'fixed-window') return log.attempts.get(this.#windowAt(policy, at).start) ?? 0
    return sum(log.admitted.filter(({ ts }) => ts > at - policy.windowMicros))
  }

  /** Tries out each moment at which an event leaves. */
  #retry(key: string, policy: Policy, cost: number, at: number, now: number): number {
    if (cost > policy.limit) return Number.POSITIVE_INFINITY
    if (policy.algorithm === 'fixed-window') return this.#windowAt(policy, at).end - now
    for (const { ts } of this.#log(key).admitted) {
      const then = ts + policy.windowMicros
      if (then > at && this.#used(key, policy, then) + cost <= policy.limit) return then - now
    }
    throw new Error('a denied hit can never pass')
  }
}

const sum = (events: readonly { cost: number }[]): number =>
  events.reduce((total, { cost }) => total + cost, 0)
const multiplesOf: WindowAt = ({ windowMicros }, at) => {
  const start = at - (at % windowMicros)
  return { start, end: start + windowMicros }
}

/** The function, asked once for each key. */
function remembered(of: (key: string) => number): (key: string) => number {
  const known = new Map<string, number>()
  return (key) => {
    const value = known.get(key) ?? of(key)
    known.set(key, value)
    return value
  }
}
