/*
 * Compiled, never run: what `toExpressRateLimitStore` returns is a store of express-rate-limit, although the package does
 * not depend on it.
 */
import { type Options, rateLimit, type Store } from 'express-rate-limit'
import {
  type ExpressRateLimitOptions,
  type ExpressRateLimitStore,
  MemoryStore,
  toExpressRateLimitStore,
} from 'express-sql-rate-limit'

const sql = new MemoryStore()

export const store: Store = toExpressRateLimitStore(sql, { name: 'api' })
export const told: (options: Options) => ExpressRateLimitOptions = (options) => options
export const limiter = rateLimit({
  limit: async () => 5,
  store: toExpressRateLimitStore(sql, { name: 'app' }),
})

type Method = 'init' | 'increment' | 'decrement' | 'resetKey' | 'get'
/** Also each method by itself, as parameters of methods are compared more loosely than those of functions. */
export const methods: { [Name in Method]: (...values: Parameters<ExpressRateLimitStore[Name]>) => unknown } =
  {
    init: (options: ExpressRateLimitOptions) => store.init?.(options as Options),
    increment: (key: string) => store.increment(key),
    decrement: (key: string) => store.decrement(key),
    resetKey: (key: string) => store.resetKey(key),
    get: (key: string) => store.get?.(key),
  }

// @ts-expect-error a limiter has a name
toExpressRateLimitStore(sql, {})
// @ts-expect-error keys are prefixed with the name
toExpressRateLimitStore(sql, { name: 'api', prefix: 'api' })
// @ts-expect-error it is made of a store of this package, and not of a pool
toExpressRateLimitStore({ query() {} }, { name: 'api' })
