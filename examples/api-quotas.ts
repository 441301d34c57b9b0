import { type Request, type RequestHandler, Router } from 'express'
import { rateLimit, type Store, usage } from 'express-sql-rate-limit'

interface Account {
  readonly name: string
  readonly plan: keyof typeof PLANS
}

/** Requests a month. */
const PLANS = { free: 1_000, pro: 100_000 } as const
/** API keys. For any user: this is an example; yours are in your database, as hashes. */
const ACCOUNTS = new Map<string, Account>([
  ['demo-free', { name: 'acme', plan: 'free' }],
  ['demo-pro', { name: 'globex', plan: 'pro' }],
])
const DAY_MS = 86_400_000
/** Where months begin, on the meter as on the bill. */
const MONTH = { every: 'month', timeZone: 'Europe/Berlin' } as const

/**
 * An API whose keys have a plan, with a quota of requests a month, and tell what they have used.
 *
 * What was used is summed up from the event log, which is why the limit has `audit`. For sums that outlive the events
 * give the store `keepUsageSeconds: { plan: 400 * 86_400 }`.
 */
export function apiQuotas(store: Store): Router {
  const plan = rateLimit({
    store,
    name: 'plan',
    limit: (req) => PLANS[accountOf(req).plan],
    window: MONTH,
    audit: true,
    // The account, not its key: a new key is no new quota.
    keyFn: (req) => accountOf(req).name,
    // What failed on our side is not used.
    skipFailedRequests: true,
    requestWasSuccessful: (_req, res) => res.statusCode < 500,
  })

  const api = Router()
  api.get('/api/hello', requireApiKey, plan, (req, res) => {
    res.json({ hello: accountOf(req).name, left: req.rateLimit?.remaining })
  })

  /** `GET /usage?from=2026-01-01&to=2027-01-01&by=month`; by default the days of the last 30. Counts nothing. */
  api.get('/usage', requireApiKey, (req, res, next) => {
    const { from = Date.now() - 30 * DAY_MS, to = Date.now(), by = 'day' } = req.query
    // Each day is a query, so nobody asks for more of them than are kept.
    if (new Date(to as string).getTime() - new Date(from as string).getTime() > 400 * DAY_MS) {
      res.status(400).json({ error: '`from` and `to` are at most 400 days apart' })
      return
    }
    if (by !== 'hour' && by !== 'day' && by !== 'month') {
      res.status(400).json({ error: '`by` is hour, day or month' })
      return
    }
    usage({
      limiter: plan,
      key: accountOf(req).name,
      from: from as string,
      to: to as string,
      bucket: { ...MONTH, every: by },
    })
      .then(({ used, buckets }) => res.json({ account: accountOf(req).name, used, buckets }))
      // Such as a `from` that is no date.
      .catch((error) =>
        error instanceof TypeError ? res.status(400).json({ error: error.message }) : next(error),
      )
  })
  return api
}

const requireApiKey: RequestHandler = (req, res, next) => {
  if (ACCOUNTS.has(req.get('X-Api-Key') ?? '')) next()
  else res.status(401).json({ error: 'Send an API key as X-Api-Key, such as demo-free' })
}

const accountOf = (req: Request): Account => ACCOUNTS.get(req.get('X-Api-Key') ?? '') as Account
