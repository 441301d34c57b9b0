import { channel } from 'node:diagnostics_channel'
import type { Decision } from './decision.js'

/** What is published on `express-sql-rate-limit:decision`. */
export interface DecisionMessage {
  readonly decision: Decision
  /** The Express request, where there is one. */
  readonly request?: unknown
}

/**
 * Channels of `node:diagnostics_channel`, for tracing and metrics: every decision, and those that a failing store left
 * to `onStoreError`. A subscriber that throws does not reach the request.
 *
 * @example
 * import { subscribe } from 'node:diagnostics_channel'
 * subscribe('express-sql-rate-limit:decision', (message) => console.log(message.decision.outcome))
 */
const decisions = channel('express-sql-rate-limit:decision')
const storeErrors = channel('express-sql-rate-limit:store-error')

/** Publishes a decision; costs next to nothing while nobody listens. */
export function publish(decision: Decision, request: unknown): void {
  if (decisions.hasSubscribers) decisions.publish({ decision, request } satisfies DecisionMessage)
  if (decision.outcome === 'degraded' && storeErrors.hasSubscribers) {
    storeErrors.publish({ decision, request } satisfies DecisionMessage)
  }
}
