import type { ServerResponse } from 'node:http'
import { type Item, serializeList } from 'structured-headers'
import type { Decision } from '../limiter/decision.js'
import type { Policy } from '../stores/store.js'

/*
 * RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers-11: two Lists of RFC 9651 whose members
 * are policies by name. It is a draft, not an RFC.
 */

/** `RateLimit-Policy: "login";q=15;w=900`. A window that is no whole number of seconds has no honest `w`: it is left out. */
export function policyField({ name, limit, windowSeconds }: Policy): string {
  const parameters = new Map([['q', limit]])
  if (Number.isInteger(windowSeconds)) parameters.set('w', windowSeconds)
  return serializeList([[name, parameters] as Item])
}

/**
 * `RateLimit: "login";r=12;t=180`: what is left, and for how long no more than that may be used.
 *
 * After an admitted hit the time until the oldest one leaves could promise far more than the limit's average rate,
 * with nearly all of a large limit left: `t` is never shorter than what is left takes at that rate. On a denial it
 * is exact, so that Retry-After is never earlier.
 */
export function limitField(policy: Policy, decision: Decision): string | null {
  if (decision.outcome === 'degraded') return null
  const { remaining, resetSeconds, outcome } = decision
  const atRate = Math.ceil((remaining * policy.windowSeconds) / Math.max(1, policy.limit))
  const wait =
    outcome === 'denied' ? (decision.retryAfterSeconds ?? resetSeconds) : Math.max(resetSeconds, atRate)
  return serializeList([
    [
      policy.name,
      new Map([
        ['r', remaining],
        ['t', wait],
      ]),
    ] as Item,
  ])
}

/** Adds a member to a List field, so that several limiters on a route make one valid field. */
export function addToList(res: ServerResponse, name: string, members: string): void {
  const before = res.getHeader(name)
  res.setHeader(name, before === undefined ? members : `${String(before)}, ${members}`)
}

/** Seconds after which a client may try again when the store is down: longer than the store takes to recover. */
const UNAVAILABLE_RETRY_SECONDS = 5

/** Tells a response's client about one decision. A denial leaves only violated policies in `RateLimit`. */
export function setRateLimitHeaders(res: ServerResponse, policy: Policy, decision: Decision): void {
  addToList(res, 'RateLimit-Policy', policyField(policy))
  if (!decision.allowed) {
    // Whole seconds, not a date: no clocks to compare (RFC 9110, section 10.2.3). None when waiting is no use.
    const wait = decision.outcome === 'denied' ? decision.retryAfterSeconds : UNAVAILABLE_RETRY_SECONDS
    if (wait !== null) res.setHeader('Retry-After', String(wait))
  }
  const field = limitField(policy, decision)
  if (field === null) return
  if (decision.outcome === 'denied') res.setHeader('RateLimit', field)
  else addToList(res, 'RateLimit', field)
}
