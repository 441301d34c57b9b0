import { channel } from 'node:diagnostics_channel'
import type { Batch, Store } from '../stores/store.js'
import type { StoreError, StoreErrorCode } from '../stores/store-error.js'
import type { BreakerState, StoreHealth } from './breaker.js'
import type { Decision } from './decision.js'

/** What is published on `express-sql-rate-limit:decision`. */
export interface DecisionMessage {
  readonly decision: Decision
  /** The Express request, where there is one. */
  readonly request?: unknown
  /** The store that the limiter counts in. */
  readonly store: Store
  /** How long the caller has waited for it, from memory or with the store. */
  readonly milliseconds: number
}

/** What is published on `express-sql-rate-limit:batch`: one call of a store's `decide`. */
export interface BatchMessage {
  readonly store: Store
  /** Hits in the batch; 0 when it only counted what was refused from memory. */
  readonly hits: number
  /** Different keys in the batch. */
  readonly keys: number
  /** From when it was sent until the store had answered or was given up. */
  readonly milliseconds: number
  readonly outcome: 'decided' | 'failed'
  /** Why it failed, else null. */
  readonly error: StoreErrorCode | null
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
 * `onStoreError`, every batch that a store was asked to decide, and every change of its breaker. A subscriber that throws
 * does not reach the request. Stores publish their sweeps themselves: see `publishSweep`.
 *
 * @example
 * import { subscribe } from 'node:diagnostics_channel'
 * subscribe('express-sql-rate-limit:decision', (message) => console.log(message.decision.outcome))
 */
const decisions = channel('express-sql-rate-limit:decision')
const storeErrors = channel('express-sql-rate-limit:store-error')
const batches = channel('express-sql-rate-limit:batch')
const breakers = channel('express-sql-rate-limit:breaker')

/**
 * Publishes a decision; costs next to nothing while nobody listens.
 *
 * @param askedAt - when it was asked for, on the monotonic clock, in milliseconds
 */
export function publish(decision: Decision, request: unknown, store: Store, askedAt: number): void {
  const isTold = decisions.hasSubscribers
  const isFailure = decision.outcome === 'degraded' && storeErrors.hasSubscribers
  if (!isTold && !isFailure) return
  const milliseconds = performance.now() - askedAt
  const message: DecisionMessage = { decision, request, store, milliseconds }
  if (isTold) decisions.publish(message)
  if (isFailure) storeErrors.publish(message)
}

/**
 * Publishes what became of a batch; costs next to nothing while nobody listens.
 *
 * @param sentAt - when it was sent, on the monotonic clock, in milliseconds
 */
export function publishBatch(
  store: Store,
  { hits, refusals }: Batch,
  sentAt: number,
  error: StoreError | null,
): void {
  if (!batches.hasSubscribers) return
  const keys = new Set(refusals.map(({ key }) => key))
  for (const { charges } of hits) for (const { key } of charges) keys.add(key)
  batches.publish({
    store,
    hits: hits.length,
    keys: keys.size,
    milliseconds: performance.now() - sentAt,
    outcome: error === null ? 'decided' : 'failed',
    error: error?.code ?? null,
  } satisfies BatchMessage)
}

/** Publishes a change of a store's breaker. */
export function publishBreaker(message: BreakerMessage): void {
  breakers.publish(message)
}
