import {
  type CalendarWindow,
  Limiter,
  type LimiterOptions,
  MemoryStore,
  type RateLimitOptions,
  rateLimit,
  rateLimitStatus,
  StoreError,
} from 'express-sql-rate-limit'
import request from 'supertest'
import { storageKey } from '../../lib/limiter/storage-key.js'
import { passTime, stopTime, stopTimers } from '../limiter/moving-time.js'
import { WatchedStore } from '../limiter/watched-store.js'
import { appWith, expressVersions } from './serve.js'

const HOUR = 3600
const DAY = 24 * HOUR
/** Noon of Monday the 5th of January 2026 in UTC, when these tests begin; 09:00 in São Paulo. */
const UNTIL_MIDNIGHT = 12 * HOUR
const UNTIL_FEBRUARY = 26 * DAY + 12 * HOUR

const quiet = { error() {} }
const limited = (options: Partial<RateLimitOptions> = {}) =>
  rateLimit({
    store: new MemoryStore({ sweepSeconds: false }),
    name: 'plan',
    limit: 2,
    window: 'month',
    keyFn: (req) => req.get('x-user') ?? 'nobody',
    onStoreError: 'deny',
    logger: quiet,
    ...options,
  })
const limiterWith = (options: Partial<LimiterOptions> = {}): Limiter =>
  new Limiter({
    store: new MemoryStore({ sweepSeconds: false }),
    limit: 2,
    window: 'day',
    onStoreError: 'deny',
    logger: quiet,
    ...options,
  })

describe.each(expressVersions)('a quota on Express %s', (_, express) => {
  beforeEach(stopTime)

  test('tells the length of this month, what is left, and after that when the next one begins', async () => {
    const app = appWith(express, limited())
    const first = await request(app).get('/').expect(200)
    expect(first.headers['ratelimit-policy']).toBe(`"plan";q=2;w=${31 * DAY}`)
    expect(first.headers.ratelimit).toBe(`"plan";r=1;t=${UNTIL_FEBRUARY}`)
    await request(app).get('/').expect(200)
    const denied = await request(app).get('/').expect(429)
    expect(denied.headers['retry-after']).toBe(String(UNTIL_FEBRUARY))
    expect(denied.headers.ratelimit).toBe(`"plan";r=0;t=${UNTIL_FEBRUARY}`)
    expect(denied.body.detail).toBe(
      `Limit "plan" allows 2 requests per month. Retry in ${UNTIL_FEBRUARY} seconds.`,
    )
    passTime(UNTIL_FEBRUARY * 1000)
    const next = await request(app).get('/').expect(200)
    expect(next.headers['ratelimit-policy']).toBe(`"plan";q=2;w=${28 * DAY}`)
  })

  test('has no w while the store is down, since nobody knows which month it is there', async () => {
    const store = new WatchedStore()
    store.before = () => {
      throw new StoreError('ERR_STORE_CONNECTION', 'down')
    }
    const { headers } = await request(appWith(express, limited({ store })))
      .get('/')
      .expect(503)
    expect(headers['ratelimit-policy']).toBe('"plan";q=2')
  })

  test('is told in the older forms as well', async () => {
    const app = appWith(express, limited({ standardHeaders: 'draft-6', legacyHeaders: true }))
    const { headers } = await request(app).get('/').expect(200)
    expect(headers).toMatchObject({
      'ratelimit-policy': `2;w=${31 * DAY}`,
      'ratelimit-limit': '2',
      'ratelimit-remaining': '1',
      'ratelimit-reset': String(UNTIL_FEBRUARY),
      'x-ratelimit-reset': String(Date.UTC(2026, 1, 1) / 1000),
    })
  })

  test('stands beside a limit of seconds, and a request that either denies is charged to neither', async () => {
    const app = appWith(
      express,
      rateLimit({
        store: new MemoryStore({ sweepSeconds: false }),
        limits: [
          { name: 'burst', limit: 1, windowSeconds: 10, keyFn: () => 'a' },
          { name: 'day', limit: 5, window: 'day', keyFn: () => 'a' },
        ],
      }),
    )
    const { headers } = await request(app).get('/').expect(200)
    expect(headers['ratelimit-policy']).toBe('"burst";q=1;w=10, "day";q=5;w=86400')
    await request(app).get('/').expect(429)
    passTime(10_001)
    expect((await request(app).get('/').expect(200)).headers.ratelimit).toContain('"day";r=3')
  })

  test('may have the time zone of the account, sync or async', async () => {
    const zones: Record<string, string> = { ana: 'America/Sao_Paulo', kiran: 'Asia/Kathmandu' }
    const window = (user: string | undefined): CalendarWindow => ({
      every: 'day',
      timeZone: zones[user ?? ''] ?? 'nowhere',
    })
    const store = new MemoryStore({ sweepSeconds: false })
    const app = appWith(
      express,
      limited({ store, name: 'sync', limit: 1, window: (req) => window(req.get('x-user')) }),
      limited({ store, name: 'async', limit: 1, window: async (req) => window(req.get('x-user')) }),
    )
    for (const [user, hours] of [
      ['ana', 15],
      ['kiran', 6.25],
    ] as const) {
      await request(app).get('/').set('x-user', user).expect(200)
      const { headers } = await request(app).get('/').set('x-user', user).expect(429)
      expect(headers['retry-after']).toBe(String(hours * HOUR))
    }
    await request(app).get('/').set('x-user', 'stranger').expect(500)
    expect(String(app.errors[0])).toContain('`window.timeZone`')
  })

  test('is shown by the status', async () => {
    const plan = limited()
    await plan.hit('ana')
    const app = express()
    app.use('/status', rateLimitStatus({ limiters: [plan], authorize: 'none' }))
    const { body } = await request(app).get('/status').query({ key: 'ana' }).expect(200)
    expect(body.limiters).toEqual([
      { key: 'ana', policy: 'plan', count: 1, limit: 2, remaining: 1, resetSeconds: UNTIL_FEBRUARY },
    ])
  })
})

describe('a quota', () => {
  beforeEach(stopTime)

  test('tells the length of the window that counted the hit, and its unit', async () => {
    const limiter = limiterWith({ window: { every: 'day', timeZone: 'Europe/Berlin' } })
    jest.setSystemTime(Date.UTC(2026, 2, 29, 12))
    const decision = await limiter.hit('a')
    expect(decision.limits[0]).toMatchObject({ windowSeconds: 23 * HOUR, every: 'day' })
    expect((await limiter.peek('a')).limits[0]).toMatchObject({ used: 1, windowSeconds: 23 * HOUR })
  })

  test('is refused from memory until its last instant, and admitted at the next', async () => {
    const store = new WatchedStore(new MemoryStore({ sweepSeconds: false }))
    const limiter = limiterWith({ store })
    passTime(UNTIL_MIDNIGHT * 1000 - 500)
    for (let i = 0; i < 3; i += 1) await limiter.hit('a')
    passTime(499)
    expect(await limiter.hit('a')).toMatchObject({ outcome: 'denied', used: 4, retryAfterSeconds: 1 })
    expect(store.batches).toHaveLength(3)
    passTime(1)
    expect(await limiter.hit('a')).toMatchObject({ outcome: 'allowed', used: 1, resetSeconds: DAY })
  })

  test('gives a hit back in its own window and in no other', async () => {
    const limiter = limiterWith()
    const first = await limiter.hit('a')
    await limiter.refund(first)
    expect(await limiter.peek('a')).toMatchObject({ used: 0 })
    const second = await limiter.hit('a')
    passTime(UNTIL_MIDNIGHT * 1000)
    await limiter.hit('a')
    await limiter.refund(second)
    expect(await limiter.peek('a')).toMatchObject({ used: 1 })
  })

  test('starts anew with a reset', async () => {
    const limiter = limiterWith({ limit: 1 })
    await limiter.hit('a')
    await limiter.reset('a')
    expect(await limiter.hit('a')).toMatchObject({ allowed: true, used: 1 })
  })

  test('that this process counts by itself meanwhile has the same windows', async () => {
    const store = new WatchedStore()
    store.before = () => {
      throw new StoreError('ERR_STORE_CONNECTION', 'down')
    }
    const limiter = limiterWith({ store, limit: 1, onStoreError: 'local' })
    await limiter.hit('a')
    // It counts by the monotonic clock, which no test moves.
    const { retryAfterSeconds, limits } = await limiter.hit('a')
    const now = performance.timeOrigin + performance.now()
    const wait = (DAY * 1000 - (now % (DAY * 1000))) / 1000
    expect(Math.abs(Number(retryAfterSeconds) - wait)).toBeLessThan(60)
    expect(limits[0]).toMatchObject({ windowSeconds: DAY, every: 'day' })
  })
})

test('a lease of a quota ends with the quota', async () => {
  stopTimers()
  const store = new WatchedStore(new MemoryStore({ sweepSeconds: false }))
  const limiter = limiterWith({ store, limit: 100, lease: 10 })
  passTime(UNTIL_MIDNIGHT * 1000 - 300)
  await limiter.hit('a')
  await limiter.hit('a')
  expect(store.batches).toHaveLength(1)
  passTime(300)
  expect(await limiter.hit('a')).toMatchObject({ used: 1 })
  expect(store.batches).toHaveLength(2)
})

describe('options', () => {
  const store = new MemoryStore({ sweepSeconds: false })
  const base = { store, limit: 1, keyFn: () => 'a' }

  test.each<[string, object]>([
    ['windowSeconds', {}],
    ['windowSeconds', { windowSeconds: 60, window: 'day' }],
    ['algorithm', { window: 'day', algorithm: 'sliding-window' }],
    ['window', { window: 'fortnight' }],
    ['window.timeZone', { window: { every: 'day', timeZone: 'Europe/Bonn' } }],
  ])('`%s` is named when it is wrong: %p', (name, options) => {
    for (const construct of [
      () => rateLimit({ ...base, ...options }),
      () => rateLimit({ store, limits: [{ limit: 1, keyFn: () => 'a', ...options }] }),
      () => new Limiter({ store, limit: 1, ...options }),
    ]) {
      expect(construct).toThrow(TypeError)
      expect(construct).toThrow(`\`${name}\``)
    }
  })

  test('a fixed window may be named as such', () => {
    expect(new Limiter({ store, limit: 1, window: 'day', algorithm: 'fixed-window' }).policy.algorithm).toBe(
      'fixed-window',
    )
  })

  test('a window that depends on the request cannot be leased', () => {
    expect(() => rateLimit({ ...base, limit: 100, window: () => 'day', lease: 2 })).toThrow('`lease`')
  })

  test('no window of a calendar is longer than the policy says', () => {
    for (const [window, days] of [
      ['week', 7],
      ['month', 31],
      ['year', 366],
    ] as const) {
      expect(new Limiter({ store, limit: 1, window }).policy.windowMicros).toBeGreaterThan(days * DAY * 1e6)
    }
  })
})

test('the stored key names the calendar, so that processes that disagree share no counter', () => {
  const policyOf = (window: CalendarWindow, name = 'plan') => limiterWith({ name, window }).policy
  const zone = { timeZone: 'America/Argentina/ComodRivadavia' }
  expect(storageKey(policyOf('month'), 'a')).toBe('plan@month:a')
  expect(storageKey(policyOf({ every: 'month', startsOn: 15, timeZone: 'Europe/Berlin' }), 'a')).toBe(
    'plan@month.15/europe/berlin:a',
  )
  const long = 'n'.repeat(64)
  const hashed = (window: CalendarWindow): string => storageKey(policyOf(window, long), 'a', 's'.repeat(16))
  const keys = [
    hashed({ every: 'month', startsOn: 30, ...zone }),
    hashed({ every: 'month', startsOn: 31, ...zone }),
  ]
  expect(new Set(keys).size).toBe(2)
  for (const key of keys) expect(Buffer.byteLength(key)).toBeLessThanOrEqual(119)
})
