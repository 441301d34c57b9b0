import type { RequestHandler } from 'express'
import { createPool } from 'mysql2'
import {
  type RateLimiterAbstract,
  RateLimiterMySQL,
  RateLimiterRedis,
  RateLimiterRes,
} from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { clientOf } from './client-of.js'
import type { HttpRule, MakeMiddleware } from './http-contender.js'

export const mysql: MakeMiddleware = (place, rule) =>
  new Promise((resolve, reject) => {
    const limiter: RateLimiterMySQL = new RateLimiterMySQL(
      {
        ...pointsOf(rule),
        storeClient: createPool({ uri: place, connectionLimit: 10 }),
        dbName: new URL(place).pathname.slice(1),
        tableName: 'rate_limits',
      },
      (error?: Error) => (error ? reject(error) : resolve(limited(limiter, rule))),
    )
  })

export const redis: MakeMiddleware = async (url, rule) => {
  const client = createClient({ url })
  await client.connect()
  return limited(
    new RateLimiterRedis({ ...pointsOf(rule), storeClient: client, useRedisPackage: true }),
    rule,
  )
}

const pointsOf = ({ limit, windowSeconds }: HttpRule) => ({
  points: limit,
  duration: windowSeconds,
  keyPrefix: 'http',
})

/** The middleware of its documentation, with the headers that it says one may want to set. */
function limited(limiter: RateLimiterAbstract, { limit }: HttpRule): RequestHandler {
  return (req, res, next) => {
    const setHeaders = ({ msBeforeNext, remainingPoints }: RateLimiterRes): void => {
      res.set({
        'Retry-After': String(msBeforeNext / 1000),
        'X-RateLimit-Limit': String(limit),
        'X-RateLimit-Remaining': String(remainingPoints),
        'X-RateLimit-Reset': String(Math.ceil((Date.now() + msBeforeNext) / 1000)),
      })
    }
    limiter.consume(clientOf(req)).then(
      (result) => {
        setHeaders(result)
        next()
      },
      (denial: unknown) => {
        if (!(denial instanceof RateLimiterRes)) return next(denial)
        setHeaders(denial)
        res.status(429).send('Too Many Requests')
      },
    )
  }
}
