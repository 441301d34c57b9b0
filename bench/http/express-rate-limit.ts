import { rateLimit, type Store } from 'express-rate-limit'
import { type RedisReply, RedisStore } from 'rate-limit-redis'
import { createClient } from 'redis'
import { clientOf } from './client-of.js'
import type { MakeMiddleware } from './http-contender.js'

const limited =
  (makeStore: (place: string) => Promise<{ store?: Store }>): MakeMiddleware =>
  async (place, { limit, windowSeconds }) =>
    rateLimit({
      ...(await makeStore(place)),
      limit,
      windowMs: windowSeconds * 1000,
      standardHeaders: 'draft-8',
      legacyHeaders: false,
      keyGenerator: clientOf,
    })

/** Its own memory store is the default. */
export const memory = limited(async () => ({}))

export const redis = limited(async (url) => {
  const client = createClient({ url })
  await client.connect()
  return {
    store: new RedisStore({ sendCommand: (...args: string[]) => client.sendCommand<RedisReply>(args) }),
  }
})
