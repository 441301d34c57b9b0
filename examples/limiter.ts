import { Limiter, type Store } from 'express-sql-rate-limit'

/** An expensive job of a user, wherever it is asked for: a queue, a socket, a command. */
export function createJob(store: Store) {
  const limiter = new Limiter({ store, name: 'job', limit: 5, windowSeconds: 3600 })

  return async (userId: string, run: () => Promise<void>) => {
    const decision = await limiter.hit(`user:${userId}`, { cost: 2 })
    if (!decision.allowed) return { retryAfterSeconds: decision.retryAfterSeconds }
    await run()
    return { remaining: decision.remaining }
  }
}
