import type { Calendar, CalendarUnit, Policy, Reading } from '../stores/store.js'
import type { StoreError } from '../stores/store-error.js'

/** One limit's part of a decision. */
export interface LimitState {
  /** The policy's name. */
  readonly policy: string
  /** The key as it was given; several parts as JSON. */
  readonly key: string
  /** Highest cost admitted in a window. */
  readonly limit: number
  /** Length of the window in seconds; of a calendar window, that of the one which counted the hit. */
  readonly windowSeconds: number
  /** What a calendar window begins with; windows of one length have none. */
  readonly every?: CalendarUnit
  /** Whether this limit denies the hit. A hit that any limit denies is charged to none. */
  readonly denied: boolean
  /** Cost inside the window, this hit included when it was admitted; for a fixed window attempts. */
  readonly used: number
  /** `limit − used`, never below 0. */
  readonly remaining: number
  /**
   * Whole seconds, rounded up, after which this limit lets the same hit pass: 0 when it does not deny it, at least 1
   * when it does, null when it never can, because the cost is above the limit.
   */
  readonly retryAfterSeconds: number | null
  /** Whole seconds, rounded up, until the oldest counted hit leaves (sliding) or the window ends (fixed). */
  readonly resetSeconds: number
}

interface Described {
  /** The policy's name: of several limits, that of the one which decided. */
  readonly policy: string
  /** The key as it was given; several parts as JSON. */
  readonly key: string
  /** Highest cost admitted in a window. */
  readonly limit: number
  /** Whether the request would have been refused, had the limiter not been in `dryRun`. */
  readonly wouldDeny: boolean
  /**
   * Every limit that is known; when memory denied the hit, only the one that did. When degraded, those of this process's
   * own count, else none.
   */
  readonly limits: readonly LimitState[]
}

/** The hit was within all limits, and is counted. Of several limits, this tells of the one with least remaining. */
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

/**
 * The hit would have gone over a limit. A sliding window has not counted it, a fixed window has. Of several limits,
 * this tells of the one that takes longest.
 */
export interface DeniedDecision extends Described {
  readonly outcome: 'denied'
  /** False, but in `dryRun`, which refuses nothing. */
  readonly allowed: boolean
  /** Cost inside the window; for a fixed window attempts, so it may be above the limit. */
  readonly used: number
  readonly remaining: number
  /**
   * Whole seconds, rounded up, at least 1: the same hit after that time passes, unless others came first. Null when
   * it never can, because its cost is above a limit.
   */
  readonly retryAfterSeconds: number | null
  readonly resetSeconds: number
}

/**
 * The store could not answer in time; `onStoreError` decided. Where that is `local`, this process's own count did, and
 * what is told is of that; else nothing is known of the window.
 */
export interface DegradedDecision extends Described {
  readonly outcome: 'degraded'
  /** What `onStoreError` said: true for `'allow'`, false for `'deny'`, and for `'local'` what this process counted. */
  readonly allowed: boolean
  /** Whether this process's own count decided. */
  readonly local: boolean
  readonly used: number | null
  readonly remaining: number | null
  readonly retryAfterSeconds: number | null
  readonly resetSeconds: number | null
  /** Why the store did not answer. */
  readonly error: StoreError
}

/** A decision that refuses for a limit: by the store, or while it is down by this process's own count. */
export type LimitDenial = DeniedDecision | DegradedDecision

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

/** A store's reading, in the caller's words. */
export function limitStateOf(policy: Policy, key: string, reading: Reading): LimitState {
  const { denied, used, retryMicros, resetMicros } = reading
  const wait = Number.isFinite(retryMicros) ? Math.max(1, wholeSeconds(retryMicros)) : null
  const state: LimitState = {
    policy: policy.name,
    key,
    limit: policy.limit,
    windowSeconds: policy.windowSeconds,
    denied,
    used,
    remaining: Math.max(0, policy.limit - used),
    retryAfterSeconds: denied ? wait : 0,
    resetSeconds: wholeSeconds(resetMicros),
  }
  const { calendar } = policy
  return calendar === undefined
    ? state
    : { ...state, every: calendar.every, windowSeconds: lengthAt(calendar, reading.windowStart) }
}

/** The length in seconds of the window that begins at an instant. */
function lengthAt(calendar: Calendar, start: number): number {
  return (calendar.windowAt(start).end - start) / 1_000_000
}

const waitOf = ({ retryAfterSeconds }: LimitState): number => retryAfterSeconds ?? Number.POSITIVE_INFINITY

/** Whether a decision tells of `a` rather than of `b`: of what denies, then of the longer wait, or of the less that remains. */
const decides = (a: LimitState, b: LimitState): boolean => {
  if (a.denied !== b.denied) return a.denied
  return a.denied ? waitOf(a) > waitOf(b) : a.remaining < b.remaining
}

/** The decision that follows from the state of all limits; there is at least one. */
export function decisionOf(limits: readonly LimitState[]): AllowedDecision | DeniedDecision {
  let deciding = limits[0] as LimitState
  for (const each of limits) if (decides(each, deciding)) deciding = each
  const { policy, key, limit, used, remaining, resetSeconds, retryAfterSeconds, denied } = deciding
  // PERF: all written out, not spread: a denial from memory takes 0.7 of the time.
  return denied
    ? {
        outcome: 'denied',
        allowed: false,
        policy,
        key,
        limit,
        used,
        remaining,
        retryAfterSeconds,
        resetSeconds,
        limits,
        wouldDeny: false,
      }
    : {
        outcome: 'allowed',
        allowed: true,
        policy,
        key,
        limit,
        used,
        remaining,
        retryAfterSeconds: 0,
        resetSeconds,
        limits,
        wouldDeny: false,
      }
}

/** The decision of a limiter that only tries its limits out. */
export const dryRunDecision = (decision: Decision): Decision =>
  decision.allowed ? decision : { ...decision, allowed: true, wouldDeny: true }

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
    local: false,
    policy: policy.name,
    key,
    limit: policy.limit,
    limits: [],
    wouldDeny: false,
    used: null,
    remaining: null,
    retryAfterSeconds: null,
    resetSeconds: null,
    error,
  }
}

/** The decision of `onStoreError: 'local'`, from what this process has counted. */
export const localDecision = (limits: readonly LimitState[], error: StoreError): DegradedDecision => ({
  ...decisionOf(limits),
  outcome: 'degraded',
  local: true,
  error,
})
