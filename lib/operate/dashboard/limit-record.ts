import type { LimitState } from '../../limiter/decision.js'
import { DecisionSeries } from './decision-series.js'
import type { Fill } from './heavy-keys.js'
import { RecentKeys } from './recent-keys.js'

/** What is recorded of one limit: its decisions by second, and its heaviest keys. Of bounded size. */
export class LimitRecord {
  readonly name: string
  readonly series = new DecisionSeries()
  /** By hits of any outcome. */
  readonly busiest = new RecentKeys()
  /** By denials only, so that keys with many hits do not hide them. */
  readonly mostDenied = new RecentKeys()

  constructor(name: string) {
    this.name = name
  }

  /** A hit that the store, or what is remembered of it, decided. */
  decided(outcome: 'allowed' | 'denied', state: LimitState, now: number): void {
    this.series.count(outcome, Math.floor(now / 1000))
    const fill = fillOf(state, now)
    const kept = this.busiest.count(state.key, now)
    kept.fill = fill
    if (outcome === 'allowed') return
    kept.denied += 1
    const denied = this.mostDenied.count(state.key, now)
    denied.denied += 1
    denied.fill = fill
  }

  /** A hit that nobody but `onStoreError` decided. */
  degraded(key: string, now: number): void {
    this.series.count('degraded', Math.floor(now / 1000))
    this.busiest.count(key, now)
  }
}

/** How full a limit was, as a decision or a peek told it. */
export function fillOf(state: LimitState, now: number): Fill {
  const { used, limit, denied, remaining, retryAfterSeconds, resetSeconds } = state
  // A key that is just full was admitted last; it is free again when the oldest hit has left.
  const wait = denied ? retryAfterSeconds : remaining === 0 ? resetSeconds : 0
  return { used, limit, freesAt: wait === null ? null : wait === 0 ? 0 : now + wait * 1000, at: now }
}
