import type { NextFunction, Request, Response } from 'express'
import type { LimitedKey } from '../limiter/decider.js'
import type { Decision } from '../limiter/decision.js'
import type { HitOptions, Limiter } from '../limiter/limiter.js'
import { checkCost, checkSeconds } from '../limiter/limiter-options.js'
import type { Key } from '../limiter/storage-key.js'
import { checkOptionNames } from '../stores/option-error.js'
import type { Policy, Store } from '../stores/store.js'
import { clientAddress } from './address-key.js'
import { answerDenial } from './denial.js'
import { giveBackByOutcome } from './give-back.js'
import { setRateLimitHeaders } from './headers.js'
import {
  type RateLimitOptions,
  type RateLimitsOptions,
  type ResolvedRateLimitOptions,
  resolveRateLimitOptions,
} from './options.js'
import { sendForbidden, sendUnavailable } from './problem.js'
import { isLimitDenial } from './told-limit.js'
import { Warnings } from './warnings.js'

declare global {
  namespace Express {
    interface Request {
      /** What the last limiter on the route decided. */
      rateLimit?: Decision
    }
  }
}

/**
 * An Express middleware that is a limiter too, with the methods of `Limiter`; of several limits, each is charged under
 * the same key. They reject with a `TypeError` where a limit depends on the request.
 */
export interface RateLimitMiddleware
  extends Pick<
    Limiter,
    'hit' | 'peek' | 'penalize' | 'refund' | 'block' | 'reset' | 'storedKeys' | 'storeHealth'
  > {
  (req: Request, res: Response, next: NextFunction): Promise<void>
  /** Its limits; none where one of them depends on the request, and so the methods reject. */
  readonly policies: readonly Policy[]
  readonly store: Store
}

/**
 * An Express middleware that lets a key's requests through up to a limit, and answers the others with 429, a
 * Retry-After header and a problem document. Works on Express 4 and 5.
 *
 * Every answer carries `RateLimit-Policy` and, where the window is known, `RateLimit`. `req.rateLimit` has the
 * decision. A request is counted once by a limiter, however often the limiter is mounted on its way.
 *
 * @example
 * app.use(rateLimit({ store, name: 'global', limit: 100, windowSeconds: 60 }))
 * app.post('/login', rateLimit({ store, limit: 15, windowSeconds: 900, keyFn: (req) => `login:${addressKey(req)}` }), login)
 *
 * @throws TypeError for a wrong or unknown option, and for a second limiter on the store that would count the same
 *   addresses under the same name.
 */
export function rateLimit(options: RateLimitOptions): RateLimitMiddleware
export function rateLimit(options: RateLimitsOptions): RateLimitMiddleware
export function rateLimit(options: RateLimitOptions | RateLimitsOptions): RateLimitMiddleware {
  const resolved = resolveRateLimitOptions(options)
  const { decider, behaviour, rules, skip, isAllowed, isRefused, handler, requestPropertyName } = resolved
  const warnings = new Warnings(behaviour.logger, resolved.label)
  warnings.checkCreation()
  const decided = new WeakSet<Request>()
  const byAddress = rules.some((rule) => rule.byAddress)

  async function rateLimit(req: Request, res: Response, next: NextFunction): Promise<void> {
    // Express 4 does not look at the promise: whatever fails must reach `next` (hazard 109).
    try {
      if (decided.has(req)) {
        warnings.warn('WRN_COUNTED_TWICE')
        next()
        return
      }
      decided.add(req)
      warnings.checkRequest(req)
      const address = clientAddress(req)
      if (isAllowed(address)) return next()
      if (isRefused(address)) return sendForbidden(req, res, 'Requests from this address are not accepted.')
      if (byAddress) warnings.checkAddress(address)
      if (byAddress && address === null && resolved.missingKey === 'deny') {
        return sendForbidden(req, res, 'The address of the client is not known.')
      }
      if (skip !== undefined && (await skip(req, res)) === true) return next()

      const keys = await keysOf(req, res)
      keys.forEach(({ key }, i) => {
        if (rules[i]?.byAddress === false) warnings.checkKey(key, address)
      })
      const decision = await decider.decide(keys, { cost: await costOf(req, res), request: req })
      Object.defineProperty(req, requestPropertyName, {
        value: decision,
        configurable: true,
        enumerable: true,
        writable: true,
      })
      // Another middleware may have answered meanwhile, such as a timeout (hazard 117).
      if (res.headersSent || res.writableEnded) return
      if (decision.wouldDeny) return next()
      const policies = keys.map(({ policy }) => policy)
      setRateLimitHeaders(res, policies, decision, resolved.headers)
      if (decision.allowed) {
        giveBackByOutcome(req, res, resolved, () => decider.refund(decision))
        next()
      } else if (handler !== null) await handler(req, res, next, decision as Parameters<typeof handler>[3])
      else if (isLimitDenial(decision)) await answerDenial(req, res, decision, resolved.denial)
      else sendUnavailable(req, res)
    } catch (error) {
      next(error)
    }
  }

  // Every key is asked for before anything is awaited, so that a client who leaves still has one (hazard 110). Of several
  // rules none may throw before the others are listened to.
  const [only, ...others] = rules
  const keysOf = async (req: Request, res: Response): Promise<LimitedKey[]> =>
    only !== undefined && others.length === 0
      ? [await only.of(req, res)]
      : Promise.all(rules.map(async (rule) => rule.of(req, res)))

  async function costOf(req: Request, res: Response): Promise<number> {
    const cost = typeof resolved.cost === 'function' ? await resolved.cost(req, res) : resolved.cost
    checkCost(cost)
    return cost
  }

  // Not `Object.assign`, which would ask the getter once and for all.
  return Object.defineProperties(
    rateLimit,
    Object.getOwnPropertyDescriptors(programmatic(resolved)),
  ) as RateLimitMiddleware
}

/** The methods of `Limiter`, on all limits of a middleware. */
function programmatic({ decider, behaviour, rules }: ResolvedRateLimitOptions) {
  const limited = (policy: Policy | null, key: Key): LimitedKey => {
    if (policy === null)
      throw new TypeError('This limiter depends on the request: use a Limiter for other hits')
    return { policy, key }
  }
  const of = (key: Key): LimitedKey[] => rules.map(({ policy }) => limited(policy, key))
  const policies = rules.map(({ policy }) => policy).filter((policy) => policy !== null)
  return {
    policies: policies.length === rules.length ? policies : [],
    store: behaviour.store,
    get storeHealth() {
      return decider.storeHealth
    },
    hit: async (key: Key, options: HitOptions = {}) => {
      checkOptionNames('a hit', options, ['cost'])
      const { cost = 1 } = options
      checkCost(cost)
      return decider.decide(of(key), { cost })
    },
    peek: async (key: Key) => decider.peek(of(key)),
    penalize: async (key: Key, cost: number) => {
      checkCost(cost)
      return decider.decide(of(key), { cost, force: true })
    },
    refund: (decision: Decision) => decider.refund(decision),
    block: async (key: Key, seconds: number) => {
      checkSeconds('seconds', seconds, 0.001)
      await decider.block(of(key), seconds)
    },
    reset: async (key: Key) => decider.reset(of(key)),
    storedKeys: (key: Key) => decider.storedKeys(rules.map(({ keyPolicy }) => limited(keyPolicy, key))),
  }
}
