import type { Decision, LimitDenial, LimitState } from '../limiter/decision.js'
import type { Policy } from '../stores/store.js'

/** What a response tells of one limit, in whichever form. All numbers are whole and not negative. */
export interface ToldLimit {
  /** The policy's name. */
  readonly name: string
  readonly limit: number
  /** Cost that is left. */
  readonly remaining: number
  /** Seconds within which no more than `remaining` may be used. */
  readonly seconds: number
  /** Seconds after which this limit lets the same hit pass: 0 when it passes, `Infinity` when it never can. */
  readonly wait: number
}

/** What a response tells of one policy. A window of unknown length is NaN seconds, for which no form has a place. */
export type ToldPolicy = Pick<Policy, 'name' | 'limit' | 'windowSeconds'>

/**
 * Whether the request is refused for a limit, by the store or while it is down by this process's own count. Shadow mode
 * denies and lets pass: then no client is told to wait.
 */
export const isLimitDenial = (decision: Decision): decision is LimitDenial =>
  !decision.allowed && decision.limits.length > 0

/**
 * What is told of a decision: all its limits when the request passes, on a refusal only the violated ones, so that no
 * `t` of another limit contradicts Retry-After; nothing when nothing is known.
 */
export function toldLimits(decision: Decision): ToldLimit[] {
  const refused = isLimitDenial(decision)
  return decision.limits.filter(({ denied }) => denied || !refused).map((state) => toldOf(state, refused))
}

/**
 * What is told of the policies. Of a calendar it is the length of the window that the decision is about, as the store has
 * told it: February's quota is not one of 30 days.
 */
export function toldPolicies(policies: readonly Policy[], { limits }: Decision): readonly ToldPolicy[] {
  if (policies.every(({ calendar }) => calendar === undefined)) return policies
  return policies.map((policy) => {
    const { name, limit, calendar } = policy
    if (calendar === undefined) return policy
    const state = limits.find((each) => each.policy === name && each.limit === limit)
    return { name, limit, windowSeconds: state?.windowSeconds ?? Number.NaN }
  })
}

/**
 * After an admitted hit the time until the oldest one leaves could promise far more than the limit's average rate, with
 * nearly all of a large limit left: `seconds` is never shorter than what is left takes at that rate. On a refusal it is
 * the wait itself, so that Retry-After is never earlier; but not for a cost above the limit, which has no Retry-After.
 */
function toldOf(state: LimitState, refused: boolean): ToldLimit {
  const { policy, limit, windowSeconds, remaining, retryAfterSeconds, resetSeconds } = state
  const wait = refused ? (retryAfterSeconds ?? Number.POSITIVE_INFINITY) : 0
  // Nothing is ever left of a limit of 0, and no window brings more.
  const atRate = Math.ceil(limit === 0 ? windowSeconds : (remaining * windowSeconds) / limit)
  const seconds = wait > 0 && Number.isFinite(wait) ? wait : Math.max(resetSeconds, atRate)
  return { name: policy, limit, remaining, seconds, wait }
}

/** Which of two limits a client meets first: the longer wait on a denial, else the lower remaining, else the longer time. */
export function isTighter(
  a: Omit<ToldLimit, 'name' | 'limit'>,
  b: Omit<ToldLimit, 'name' | 'limit'>,
): boolean {
  if (a.wait !== b.wait) return a.wait > b.wait
  return a.remaining === b.remaining ? a.seconds > b.seconds : a.remaining < b.remaining
}
