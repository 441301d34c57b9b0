import type { Decision } from '../limiter/decision.js'
import type { Policy } from '../stores/store.js'
import { LEGACY_FORM, LIMIT_FIELDS, STANDARD_FORMS } from './header-forms.js'
import type { HeaderTarget } from './header-target.js'
import { isLimitDenial, toldLimits, toldPolicies } from './told-limit.js'

/**
 * The form of the `RateLimit` and `RateLimit-Policy` fields, by the revision of draft-ietf-httpapi-ratelimit-headers;
 * `false` sends none. With `draft-6` what is left stands in `RateLimit-Limit`, `-Remaining` and `-Reset`.
 */
export type StandardHeaders = 'draft-11' | 'draft-8' | 'draft-7' | 'draft-6' | false

/** Which fields tell a client about its limits. */
export interface HeaderOptions {
  readonly standardHeaders: StandardHeaders
  /** Whether to send `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the last in seconds since the epoch. */
  readonly legacyHeaders: boolean
}

/** Seconds after which a client may try again when the store is down: longer than the store takes to recover. */
const UNAVAILABLE_RETRY_SECONDS = 5

/**
 * Tells a response's client about one decision. What earlier limiters on the route told is added to; a denial leaves
 * only the violated limits, and all policies. A store that did not answer leaves nothing to tell but the policies,
 * unless this process has counted for itself.
 *
 * The forms without lists (drafts 6 and 7, and `X-RateLimit`) tell of one limit: the lowest remaining, or on a denial
 * the longest wait. What cannot be sent as it is, such as a name outside ASCII, is left out. `Retry-After` in whole
 * seconds is sent whatever the options, except where waiting is no use.
 */
export function setRateLimitHeaders(
  res: HeaderTarget,
  policies: readonly Policy[],
  decision: Decision,
  options: HeaderOptions,
): void {
  if (!decision.allowed) setRetryAfter(res, decision)
  if (isLimitDenial(decision)) for (const field of LIMIT_FIELDS) res.removeHeader(field)

  const limits = toldLimits(decision)
  if (options.standardHeaders !== false) {
    const form = STANDARD_FORMS[options.standardHeaders]
    form.addPolicies(res, toldPolicies(policies, decision))
    form.addLimits(res, limits)
  }
  if (options.legacyHeaders) LEGACY_FORM.addLimits(res, limits)
}

/** Seconds, not a date: no clocks to compare (RFC 9110, section 10.2.3). None when no waiting helps. */
function setRetryAfter(res: HeaderTarget, decision: Decision): void {
  const wait = isLimitDenial(decision) ? decision.retryAfterSeconds : UNAVAILABLE_RETRY_SECONDS
  if (wait === null) res.removeHeader('Retry-After')
  else res.setHeader('Retry-After', String(wait))
}
