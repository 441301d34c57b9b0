import type { Request } from 'express'
import { type RateLimitMiddleware, rateLimit, type Store } from 'express-sql-rate-limit'

/** What a plan allows. */
export interface Plan {
  readonly perSecond: number
  readonly perMonth: number
}

/** An account, as your authentication has found it by the API key that a request sent. */
export interface Account {
  readonly id: string
  readonly plan: Plan
}

/** A burst and a quota by plan, decided together: what one of them denies uses up nothing of the other. */
export function planLimits(store: Store, accountOf: (req: Request) => Account): RateLimitMiddleware {
  // The account, not its key: a new key is no new quota, and no key is ever stored.
  const keyFn = (req: Request) => accountOf(req).id
  return rateLimit({
    store,
    limits: [
      { name: 'burst', limit: (req) => accountOf(req).plan.perSecond, windowSeconds: 1, keyFn },
      { name: 'quota', limit: (req) => accountOf(req).plan.perMonth, window: 'month', keyFn },
    ],
    // An export counts as much as ten other calls.
    cost: (req) => (req.path === '/export' ? 10 : 1),
  })
}
