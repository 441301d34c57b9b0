import express, { type Express } from 'express'
import { rateLimit } from 'express-rate-limit'
import { type Store, toExpressRateLimitStore } from 'express-sql-rate-limit'

/** An application that keeps express-rate-limit, and counts in a database for all its processes. */
export function createApp(store: Store): Express {
  const app = express()
  app.use(
    rateLimit({
      windowMs: 60_000,
      limit: 100,
      standardHeaders: 'draft-8',
      store: toExpressRateLimitStore(store, { name: 'global' }),
    }),
  )
  const loginLimit = rateLimit({
    windowMs: 900_000,
    limit: 5,
    skipSuccessfulRequests: true,
    // One for each limiter, on one store.
    store: toExpressRateLimitStore(store, { name: 'login' }),
  })
  app.post('/login', loginLimit, express.json(), (req, res) => {
    res.sendStatus(req.body?.password === 'demo' ? 204 : 401)
  })
  return app
}
