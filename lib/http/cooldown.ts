import type { Request, Response } from 'express'
import type { Decision, DeniedDecision } from '../limiter/decision.js'
import { checkSeconds } from '../limiter/limiter-options.js'
import type { Key } from '../limiter/storage-key.js'
import { checkOptionNames, optionError } from '../stores/option-error.js'
import type { Store } from '../stores/store.js'
import {
  type DenialHandler,
  type KeyFunction,
  REQUEST_OPTION_NAMES,
  type RequestBehaviourOptions,
} from './options.js'
import { denialProblem, sendProblem, sendUnavailable } from './problem.js'
import { type RateLimitMiddleware, rateLimit } from './rate-limit.js'

/** Options of `cooldown`: those of `rateLimit` that make sense for one use a period. */
export interface CooldownOptions
  extends Omit<
    RequestBehaviourOptions,
    'onStoreError' | 'localShare' | 'cost' | 'handler' | 'message' | 'dryRun'
  > {
  readonly store: Store
  /** The period in seconds, 0.001 to 31,536,000: one use, and the next not before it is over. */
  readonly seconds: number
  /** Whose use it is, such as `claim:42`: an account, as a rule, not an address. */
  readonly keyFn: KeyFunction
  /** The name in headers and problems, and the namespace of the keys. Default `cooldown`. */
  readonly name?: string | undefined
}

/** The options that cannot bend the rule: no cost, no other limit, nothing that lets through. */
const OPTION_NAMES = [
  ...REQUEST_OPTION_NAMES.filter(
    (name) => !['onStoreError', 'localShare', 'cost', 'handler', 'message', 'dryRun'].includes(name),
  ),
  'seconds',
  'keyFn',
  'name',
]

/** Whether something may be used, and if not, when. */
export interface CooldownState {
  readonly ready: boolean
  /** Whole seconds, rounded up, until the next use; 0 when ready. */
  readonly waitSeconds: number
  /** That instant as an ISO 8601 time in UTC; null when ready. */
  readonly nextUseAt: string | null
}

/** The middleware of a cooldown. */
export interface Cooldown extends Pick<RateLimitMiddleware, 'reset' | 'refund'> {
  (...parameters: Parameters<RateLimitMiddleware>): Promise<void>
  /** What to show before the button is pressed; uses nothing. Rejects with a `StoreError` when the store fails. */
  peek(key: Key): Promise<CooldownState>
}

/**
 * One use per period: a rule that users see and that is enforced exactly, where a rate limit is a blunt cap. While the
 * store is down nobody passes (503). The 429 tells when the next use is allowed: `nextUseAt` and `waitSeconds` in the
 * problem document, beside Retry-After.
 *
 * @example
 * const claims = cooldown({ store, name: 'claim', seconds: 3600, keyFn: (req) => `claim:${req.user.id}` })
 * app.get('/claim', async (req, res) => res.json(await claims.peek(`claim:${req.user.id}`)))
 * app.post('/claim', claims, claim)
 *
 * @throws TypeError for a wrong or unknown option.
 */
export function cooldown(options: CooldownOptions): Cooldown {
  checkOptionNames('cooldown', options, OPTION_NAMES)
  const { seconds, name = 'cooldown', ...rest } = options
  checkSeconds('seconds', seconds, 0.001)
  if (typeof options.keyFn !== 'function') throw optionError('keyFn', 'a function', options.keyFn)
  const handler: DenialHandler = (req: Request, res: Response, _next, decision) => {
    if (decision.outcome === 'degraded') return sendUnavailable(req, res)
    const { statusCode = 429, problemType } = options
    const { waitSeconds, nextUseAt } = stateOf(decision)
    sendProblem(
      req,
      res,
      Object.assign(denialProblem(decision, problemType, statusCode), { waitSeconds, nextUseAt }),
    )
  }
  const limiter = rateLimit({
    ...rest,
    name,
    limit: 1,
    windowSeconds: seconds,
    onStoreError: 'deny',
    handler,
  })
  const middleware = (...parameters: Parameters<RateLimitMiddleware>): Promise<void> => limiter(...parameters)
  return Object.assign(middleware, {
    reset: limiter.reset,
    refund: limiter.refund,
    peek: async (key: Key): Promise<CooldownState> => {
      const decision = await limiter.peek(key)
      if (decision.outcome === 'degraded') throw decision.error
      return stateOf(decision)
    },
  })
}

/** Rounded up, so that who comes at that time is not too early. */
function stateOf(decision: Exclude<Decision, { outcome: 'degraded' }> | DeniedDecision): CooldownState {
  const waitSeconds = decision.retryAfterSeconds ?? 0
  if (waitSeconds === 0) return { ready: true, waitSeconds, nextUseAt: null }
  return { ready: false, waitSeconds, nextUseAt: new Date(Date.now() + waitSeconds * 1000).toISOString() }
}
