import type { Policy, Reading } from '../stores/store.js'
import type { StoreError } from '../stores/store-error.js'

interface Described {
  /** The policy's name. */
  readonly policy: string
  /** The key as it was given; several parts as JSON. */
  readonly key: string
  /** Highest cost admitted in a window. */
  readonly limit: number
}

/** The hit was within the limit, and is counted. */
export interface AllowedDecision extends Described {
  readonly outcome: 'allowed'
  readonly allowed: true
  /** Cost inside the window, this hit included. */
  readonly used: number
  /** `limit − used`, never below 0. */
  readonly remaining: number
  readonly retryAfterSeconds: 0
  /** Whole seconds, rounded up, until the oldest counted hit leaves (sliding) or the window ends (fixed). */
  readonly resetSeconds: number
}

/** The hit would have gone over the limit. A sliding window has not counted it, a fixed window has. */
export interface DeniedDecision extends Described {
  readonly outcome: 'denied'
  readonly allowed: false
  /** Cost inside the window; for a fixed window attempts, so it may be above the limit. */
  readonly used: number
  readonly remaining: number
  /**
   * Whole seconds, rounded up, at least 1: the same hit after that time passes, unless others came first. Null when
   * it never can, because its cost is above the limit.
   */
  readonly retryAfterSeconds: number | null
  readonly resetSeconds: number
}

/** The store could not answer in time; `onStoreError` decided, and nothing is known of the window. */
export interface DegradedDecision extends Described {
  readonly outcome: 'degraded'
  /** True for `onStoreError: 'allow'`, false for `'deny'`. */
  readonly allowed: boolean
  readonly used: null
  readonly remaining: null
  readonly retryAfterSeconds: null
  readonly resetSeconds: null
  /** Why the store did not answer. */
  readonly error: StoreError
}

/**
 * What a limiter answers. A denial is an answer, never a rejection.
 *
 * @example
 * const decision = await limiter.hit('claim:42')
 * if (decision.outcome === 'denied') console.log(`again in ${decision.retryAfterSeconds} s`)
 */
export type Decision = AllowedDecision | DeniedDecision | DegradedDecision

/** Whole seconds, rounded up: a client that waits for them never comes too early. */
export const wholeSeconds = (micros: number): number => Math.max(0, Math.ceil(micros / 1_000_000))

/** The decision of a store, in the caller's words. */
export function decisionOf(policy: Policy, key: string, reading: Reading): AllowedDecision | DeniedDecision {
  const { denied, used, retryMicros, resetMicros } = reading
  const state = {
    policy: policy.name,
    key,
    limit: policy.limit,
    used,
    remaining: Math.max(0, policy.limit - used),
    resetSeconds: wholeSeconds(resetMicros),
  }
  if (!denied) return { outcome: 'allowed', allowed: true, ...state, retryAfterSeconds: 0 }
  const retryAfterSeconds = Number.isFinite(retryMicros) ? Math.max(1, wholeSeconds(retryMicros)) : null
  return { outcome: 'denied', allowed: false, ...state, retryAfterSeconds }
}

/** The decision of `onStoreError`. */
export function degradedDecision(
  policy: Policy,
  key: string,
  allowed: boolean,
  error: StoreError,
): DegradedDecision {
  return {
    outcome: 'degraded',
    allowed,
    policy: policy.name,
    key,
    limit: policy.limit,
    used: null,
    remaining: null,
    retryAfterSeconds: null,
    resetSeconds: null,
    error,
  }
}
