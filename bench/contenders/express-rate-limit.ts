import { MemoryStore, type Options, type Store } from 'express-rate-limit'
import { type RedisReply, RedisStore } from 'rate-limit-redis'
import { createClient } from 'redis'
import type { Contender, Instance, Rule } from './contender.js'

/**
 * rate-limit-redis: the store of express-rate-limit by itself, as the other contenders have no middleware around
 * them either. That spares it work; with its middleware it is measured at the level of HTTP.
 */
export function expressRateLimitRedis(): Contender {
  return {
    name: 'express-rate-limit, rate-limit-redis',
    store: 'redis',
    algorithm: 'fixed window',
    configuration: '`store.increment(key)`, one client of `redis`, `sendCommand` as its readme has it',
    async open(place, rule) {
      const client = createClient({ url: place })
      await client.connect()
      const store = new RedisStore({
        sendCommand: (...args: string[]) => client.sendCommand<RedisReply>(args),
        prefix: `limit-${rule.limit}:`,
      })
      return instanceOf(store, rule, () => client.close())
    },
  }
}

/** The memory store of express-rate-limit by itself. */
export function expressRateLimitMemory(): Contender {
  return {
    name: 'express-rate-limit, memory',
    store: 'memory',
    algorithm: 'fixed window',
    configuration: '`store.increment(key)`',
    open: async (_place, rule) => {
      const store = new MemoryStore()
      return instanceOf(store, rule, async () => store.shutdown())
    },
  }
}

async function instanceOf(store: Store, rule: Rule, close: () => Promise<void>): Promise<Instance> {
  // The middleware hands its options to the store; of these a store reads the window alone.
  await store.init?.({ windowMs: rule.windowSeconds * 1000 } as Options)
  return {
    hit: async (key) => (await store.increment(key)).totalHits <= rule.limit,
    close,
  }
}
