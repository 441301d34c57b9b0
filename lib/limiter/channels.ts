import { channel } from 'node:diagnostics_channel'
import type { Store } from '../stores/store.js'
import type { BreakerState, StoreHealth } from './breaker.js'
import type { Decision } from './decision.js'

/** What is published on `express-sql-rate-limit:decision`. */
export interface DecisionMessage {
  readonly decision: Decision
  /** The Express request, where there is one. */
  readonly request?: unknown
}

/** What is published on `express-sql-rate-limit:breaker`. */
export interface BreakerMessage {
  readonly store: Store
  /** The state that ended. */
  readonly previous: BreakerState
  readonly health: StoreHealth
}

/**
 * Channels of `node:diagnostics_channel`, for tracing and metrics: every decision, those that a failing store left to
 * `onStoreError`, and every change of a store's breaker. A subscriber that throws does not reach the request.
 *
 * @example
 * import { subscribe } from 'node:diagnostics_channel'
 * subscribe('express-sql-rate-limit:decision', (message) => console.log(message.decision.outcome))
 */
const decisions = channel('express-sql-rate-limit:decision')
const storeErrors = channel('express-sql-rate-limit:store-error')
const breakers = channel('express-sql-rate-limit:breaker')

/** Publishes a decision; costs next to nothing while nobody listens. */
export function publish(decision: Decision, request: unknown): void {
  if (decisions.hasSubscribers) decisions.publish({ decision, request } satisfies DecisionMessage)
  if (decision.outcome === 'degraded' && storeErrors.hasSubscribers) {
    storeErrors.publish({ decision, request } satisfies DecisionMessage)
  }
}

/** Publishes a change of a store's breaker. */
export function publishBreaker(message: BreakerMessage): void {
  breakers.publish(message)
}
