import type { NextFunction, Request, Response } from 'express'
import type { Decision } from '../limiter/decision.js'
import type { Limiter } from '../limiter/limiter.js'
import { setRateLimitHeaders } from './headers.js'
import { type RateLimitOptions, resolveRateLimitOptions } from './options.js'
import { denialProblem, sendProblem, sendUnavailable } from './problem.js'

declare global {
  namespace Express {
    interface Request {
      /** What the last limiter on the route decided. */
      rateLimit?: Decision
    }
  }
}

/** An Express middleware that is a limiter too: `hit`, `peek` and `reset` as of `Limiter`. */
export interface RateLimitMiddleware extends Pick<Limiter, 'hit' | 'peek' | 'reset' | 'policy' | 'store'> {
  (req: Request, res: Response, next: NextFunction): Promise<void>
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
 * app.post('/login', rateLimit({ store, limit: 15, windowSeconds: 900, keyFn: (req) => `login:${req.ip}` }), login)
 *
 * @throws TypeError for a wrong or unknown option, and for a second limiter on the store that would count the same
 *   addresses under the same name.
 */
export function rateLimit(options: RateLimitOptions): RateLimitMiddleware {
  const { limiter, keyFn, handler } = resolveRateLimitOptions(options)
  const { policy, store } = limiter
  const decided = new WeakSet<Request>()

  async function rateLimit(req: Request, res: Response, next: NextFunction): Promise<void> {
    // Express 4 does not look at the promise: whatever fails must reach `next` (hazard 109).
    try {
      if (decided.has(req)) {
        next()
        return
      }
      decided.add(req)
      const decision = await limiter.hit(await keyFn(req))
      req.rateLimit = decision
      // Another middleware may have answered meanwhile, such as a timeout (hazard 117).
      if (res.headersSent || res.writableEnded) return
      setRateLimitHeaders(res, policy, decision)
      if (decision.allowed) next()
      else if (handler !== null) await handler(req, res, next, decision)
      else if (decision.outcome === 'denied') sendProblem(req, res, denialProblem(policy, decision))
      else sendUnavailable(req, res)
    } catch (error) {
      next(error)
    }
  }

  return Object.assign(rateLimit, {
    policy,
    store,
    hit: limiter.hit.bind(limiter),
    peek: limiter.peek.bind(limiter),
    reset: limiter.reset.bind(limiter),
  })
}
