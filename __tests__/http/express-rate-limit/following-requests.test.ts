import { AsyncResource, executionAsyncResource } from 'node:async_hooks'
import { MemoryStore, toExpressRateLimitStore } from 'express-sql-rate-limit'

const store = new MemoryStore({ sweepSeconds: false })
let names = 0

function follow() {
  names += 1
  const adapter = toExpressRateLimitStore(store, { name: `limiter-${names}` })
  adapter.init({ windowMs: 60_000, limit: 100, skipFailedRequests: true })
  return adapter
}

/** As a request is: a context of its own, which leaves nothing behind. */
const inRequest = <T>(work: () => T): T => new AsyncResource('request').runInAsyncScope(work)

test('following requests for fifty limiters puts no more on each promise than for one', () => {
  // Node.js 20 keeps what a context holds as properties of each asynchronous resource, a promise too.
  const held = (limiters: number) =>
    inRequest(() => {
      for (let i = 0; i < limiters; i += 1) void follow().increment('k')
      return Object.getOwnPropertySymbols(executionAsyncResource()).length
    })
  const one = held(1)
  expect(held(50)).toBe(one)
})
