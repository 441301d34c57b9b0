import { MemoryStore, type RateLimitOptions, type RateLimitsOptions, rateLimit } from 'express-sql-rate-limit'
import request from 'supertest'
import { stopTime } from '../limiter/moving-time.js'
import { WatchedStore } from '../limiter/watched-store.js'
import { appWith, expressVersions } from './serve.js'

const create = (options: Partial<RateLimitOptions> = {}) =>
  rateLimit({
    store: new WatchedStore(),
    limit: 20,
    windowSeconds: 60,
    keyFn: () => 'all',
    lease: 2,
    onStoreError: 'deny',
    timeoutMs: 60_000,
    ...options,
  })

describe.each(expressVersions)('a middleware with a lease, on Express %s', (_, express) => {
  beforeEach(stopTime)

  test('asks the store about every second request, and its fields count each of them', async () => {
    const store = new WatchedStore()
    const app = appWith(express, create({ store }))
    const fields = []
    for (let i = 0; i < 6; i += 1) fields.push((await request(app).get('/').expect(200)).get('RateLimit'))
    // The window of a lease ends a second later: its hits are stored as of its end.
    expect(fields).toEqual([19, 18, 17, 16, 15, 14].map((left) => `"default";r=${left};t=61`))
    expect(store.batches).toHaveLength(3)
  })

  test('lets exactly the limit through', async () => {
    const app = appWith(express, create())
    const statuses = []
    for (let i = 0; i < 22; i += 1) statuses.push((await request(app).get('/')).status)
    expect(statuses).toEqual([...new Array(20).fill(200), 429, 429])
  })

  test('gives requests back by their outcome', async () => {
    const store = new WatchedStore()
    const limiter = create({ store, skipSuccessfulRequests: true })
    const app = appWith(express, limiter)
    for (let i = 0; i < 3; i += 1) {
      const { refund } = store
      const refunded = new Promise<void>((resolve) => {
        store.refund = async (...parameters) => {
          const left = await refund.apply(store, parameters)
          resolve()
          return left
        }
      })
      await request(app).get('/').expect(200)
      await refunded
      store.refund = refund
    }
    expect(await limiter.peek('all')).toMatchObject({ used: 0 })
  })
})

describe('a lease is for one limit that is the same for every request', () => {
  const store = new MemoryStore({ sweepSeconds: false })
  const limit = { limit: 100, windowSeconds: 60, keyFn: () => 'k' }
  const one = { store, ...limit }

  test.each<[string, object, RegExp]>([
    [
      'several limits',
      { store, limits: [limit], lease: 5 },
      /`lease` to be left out .*several limits.*5 \(number\)/,
    ],
    [
      'a limit of the request',
      { ...one, limit: () => 100, lease: 5 },
      /`lease` to be left out .*the request/,
    ],
    [
      'a window of the request',
      { ...one, windowSeconds: () => 60, lease: 5 },
      /`lease` to be left out .*the request/,
    ],
    [
      'a part of several limits',
      { store, limits: [{ ...limit, lease: 5 }] },
      /Unknown option `lease` of a limit/,
    ],
    [
      'more than a tenth',
      { ...one, lease: 11 },
      /`lease` to be a whole number from 2 to 10, .*got 11 \(number\)/,
    ],
    ['a small limit', { ...one, limit: 19, lease: 2 }, /`lease` to be left out where the limit is below 20/],
  ])('not for %s', (_, options, message) => {
    const act = (): unknown => rateLimit(options as RateLimitOptions & RateLimitsOptions)
    expect(act).toThrow(TypeError)
    expect(act).toThrow(message)
  })

  test('two to a tenth of it are fine', () => {
    for (const lease of [2, 10]) expect(() => rateLimit({ ...one, lease })).not.toThrow()
  })
})
