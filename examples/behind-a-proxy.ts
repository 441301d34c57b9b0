import express, { type Express } from 'express'
import { addressKey, rateLimit, type Store } from 'express-sql-rate-limit'

/** How many proxies stand in front, each of which appends the address that called it to X-Forwarded-For. */
export const TRUST_PROXY = {
  /** nginx with `proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;`, or with `$remote_addr` instead. */
  nginx: 1,
  cloudflare: 1,
  /** An AWS Application Load Balancer whose `xff_header_processing.mode` is `append`, which is the default. */
  alb: 1,
  'cloudflare, nginx': 2,
  'cloudflare, alb': 2,
  'cloudfront, alb': 2,
} as const

/** An application that limits by the client's address, and tells it. */
export function createProxiedApp(store: Store, front: keyof typeof TRUST_PROXY): Express {
  const app = express()
  // Before any limiter is asked. Never `true`: that would believe what the client wrote.
  app.set('trust proxy', TRUST_PROXY[front])
  app.use(rateLimit({ store, name: 'global', limit: 3, windowSeconds: 60 }))
  app.get('/my-address', (req, res) => {
    res.json({ address: req.ip, key: addressKey(req) })
  })
  return app
}
