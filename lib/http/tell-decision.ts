import type { Decision } from '../limiter/decision.js'
import type { Limiter } from '../limiter/limiter.js'
import { checkBoolean, checkOptionNames, optionError } from '../stores/option-error.js'
import { STANDARD_FORMS } from './header-forms.js'
import type { HeaderTarget } from './header-target.js'
import { type StandardHeaders, setRateLimitHeaders } from './headers.js'
import type { RateLimitMiddleware } from './rate-limit.js'

/** Which fields `tellDecision` sets. */
export interface TellDecisionOptions {
  /** The revision of the draft by which `RateLimit` and `RateLimit-Policy` are written, or false. Default `draft-11`. */
  readonly standardHeaders?: StandardHeaders | undefined
  /** Whether `X-RateLimit-*` are sent as well. Default false. */
  readonly legacyHeaders?: boolean | undefined
}

/**
 * Sets the header fields that `rateLimit` sends, for other frameworks than Express: `RateLimit`, `RateLimit-Policy`, and on
 * a refusal `Retry-After`. What an earlier limiter told is added to, so call it for each limiter on a request's way.
 *
 * @param res - the response of node:http, such as Fastify's `reply.raw`, or anything with its `getHeader`, `setHeader` and
 *   `removeHeader`
 *
 * @example
 * const decision = await limiter.hit(addressKey(req))
 * tellDecision(res, limiter, decision)
 *
 * @throws TypeError for a wrong or unknown option.
 */
export function tellDecision(
  res: HeaderTarget,
  limiter: Pick<Limiter, 'policy'> | Pick<RateLimitMiddleware, 'policies'>,
  decision: Decision,
  options: TellDecisionOptions = {},
): void {
  checkOptionNames('tellDecision', options, ['standardHeaders', 'legacyHeaders'])
  const { standardHeaders = 'draft-11', legacyHeaders = false } = options
  if (standardHeaders !== false && !Object.hasOwn(STANDARD_FORMS, standardHeaders)) {
    const forms = Object.keys(STANDARD_FORMS).join(', ')
    throw optionError('standardHeaders', `one of ${forms}, or false`, standardHeaders)
  }
  checkBoolean('legacyHeaders', legacyHeaders)
  const policies = 'policies' in limiter ? limiter.policies : [limiter.policy]
  setRateLimitHeaders(res, policies, decision, { standardHeaders, legacyHeaders })
}
