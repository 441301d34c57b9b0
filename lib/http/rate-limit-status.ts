import type { NextFunction, Request, Response } from 'express'
import type { StoreHealth } from '../limiter/breaker.js'
import type { Limiter } from '../limiter/limiter.js'
import type { Key } from '../limiter/storage-key.js'
import { checkBoolean, checkOptionNames, optionError } from '../stores/option-error.js'
import type { Policy } from '../stores/store.js'
import { type Authorize, checkAuthorize, isAuthorized } from './authorize.js'
import { sendBadRequest, sendForbidden, sendUnavailable } from './problem.js'

/** What the status asks of a limiter: a `rateLimit` middleware has it, and a `Limiter`. */
export type StatusLimiter = Pick<Limiter, 'peek'> &
  Partial<Pick<Limiter, 'store' | 'storeHealth'>> & { readonly policies?: readonly Policy[] }

export interface RateLimitStatusOptions {
  /** The limiters to show, in this order. One with a limit that depends on the request cannot be asked for a key alone. */
  readonly limiters: readonly StatusLimiter[]
  /** Who may look: `(req) => boolean`, may be async, or `'none'`. Required. Anything but `true` answers 403. */
  readonly authorize: Authorize
  /**
   * Whether to tell how each store of theirs is: `stores`, an array of `StoreHealth` in the order of the limiters, in
   * the answer and in the 503 while one is down. For operators: it has error codes. Default false.
   */
  readonly storeHealth?: boolean | undefined
}

/** One limiter's entry in the status. */
export interface LimiterStatus {
  readonly key: string
  readonly policy: string
  /** Cost inside the window; attempts for a fixed window. */
  readonly count: number
  readonly limit: number
  readonly remaining: number
  /** Whole seconds until the oldest counted hit leaves (sliding) or the window ends (fixed); 0 when nothing counts. */
  readonly resetSeconds: number
}

/**
 * A handler for `GET /?key=…` that tells how full each limiter is for a key, and counts nothing:
 * `{"limiters":[{"key","policy","count","limit","remaining","resetSeconds"}]}`. A key of several parts is asked for
 * with `key` repeated. A missing key is a 400 problem, a store that is down a 503.
 *
 * It shows the state of any key to whoever may call it. So there is no default for `authorize`: a function decides for each
 * request, and `'none'` says that something in front of it has.
 *
 * @example
 * const limiters = [globalLimit, loginLimit]
 * app.use('/status', rateLimitStatus({ limiters, authorize: (req) => req.user?.isAdmin === true }))
 *
 * @throws TypeError when `limiters` is no array of limiters, one of them has limits that depend on the request, or
 *   `authorize` is neither a function nor `'none'`.
 */
export function rateLimitStatus(options: RateLimitStatusOptions) {
  checkOptionNames('rateLimitStatus', options, ['limiters', 'authorize', 'storeHealth'])
  const { limiters, authorize, storeHealth = false } = options
  checkBoolean('storeHealth', storeHealth)
  if (!Array.isArray(limiters) || !limiters.every((limiter) => typeof limiter?.peek === 'function')) {
    throw optionError('limiters', 'an array of limiters', limiters)
  }
  if (limiters.some(({ policies }) => policies?.length === 0)) {
    throw new TypeError(
      'Expected `limiters` to be limiters that a key alone can be looked up in, got one with a limit that depends on the request',
    )
  }
  checkAuthorize(authorize)

  return async function rateLimitStatus(req: Request, res: Response, next: NextFunction): Promise<void> {
    try {
      const isMine = req.method === 'GET' || req.method === 'HEAD'
      // Mounted by `use`, it answers the mount point only; on a route, whatever the route's path is.
      if (!isMine || (req.route === undefined && req.path !== '/')) {
        next()
        return
      }
      const mayLook = await isAuthorized(authorize, req)
      // Another middleware may have answered meanwhile, such as a timeout (hazard 117).
      if (res.headersSent || res.writableEnded) return
      if (!mayLook) {
        sendForbidden(req, res, 'This is for operators.')
        return
      }
      const key = keyOf(req.query.key)
      if (key === null) {
        sendBadRequest(req, res, 'Give the key to look up, as in ?key=login:203.0.113.9')
        return
      }
      const decisions = await Promise.all(limiters.map((limiter) => limiter.peek(key)))
      if (res.headersSent || res.writableEnded) return
      const health = storeHealth ? { stores: healthOf(limiters) } : {}
      const entries: LimiterStatus[] = []
      for (const decision of decisions) {
        if (decision.outcome === 'degraded') {
          sendUnavailable(req, res, health)
          return
        }
        for (const state of decision.limits) {
          const { policy, used, limit, remaining, resetSeconds } = state
          entries.push({ key: state.key, policy, count: used, limit, remaining, resetSeconds })
        }
      }
      res.setHeader('Cache-Control', 'no-store')
      res.json({ limiters: entries, ...health })
    } catch (error) {
      next(error)
    }
  }
}

/** One entry a store, however many limiters share it. */
function healthOf(limiters: readonly StatusLimiter[]): StoreHealth[] {
  const stores = new Map(limiters.map(({ store, storeHealth }) => [store, storeHealth]))
  return [...stores.values()].filter((health) => health !== undefined)
}

/** The query's key; Express makes an array of a repeated parameter, and may make an object of `key[a]=`. */
function keyOf(value: unknown): Key | null {
  if (typeof value === 'string') return value === '' ? null : value
  return Array.isArray(value) && value.every((part) => typeof part === 'string') ? value : null
}
