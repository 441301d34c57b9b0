import {
  type DegradedDecision,
  type DeniedDecision,
  Limiter,
  MemoryStore,
  type RateLimitOptions,
  rateLimit,
} from 'express-sql-rate-limit'
import request from 'supertest'
import { stopTime } from '../limiter/moving-time.js'
import { failures, WatchedStore } from '../limiter/watched-store.js'
import { appWith, expressVersions } from './serve.js'

const create = (options: Partial<RateLimitOptions> = {}) =>
  rateLimit({
    store: new MemoryStore({ sweepSeconds: false }),
    limit: 2,
    windowSeconds: 60,
    timeoutMs: 60_000,
    logger: { error() {} },
    dryRun: true,
    ...options,
  })

describe.each(expressVersions)('a limiter in dryRun, on Express %s', (_, express) => {
  test('lets everything through, and its decisions tell what would have been', async () => {
    const app = appWith(express, create())
    for (let i = 0; i < 4; i += 1) await request(app).get('/').expect(200)
    expect(app.handled.map(({ rateLimit: told }) => [told?.outcome, told?.allowed, told?.wouldDeny])).toEqual(
      [
        ['allowed', true, false],
        ['allowed', true, false],
        ['denied', true, true],
        ['denied', true, true],
      ],
    )
    const denied = app.handled[3]?.rateLimit as DeniedDecision
    expect(denied).toMatchObject({ used: 2, remaining: 0 })
    expect(denied.retryAfterSeconds).toBeGreaterThan(0)
  })

  test('tells no client to wait', async () => {
    const app = appWith(express, create({ limit: 0, legacyHeaders: true }))
    const { headers } = await request(app).get('/').expect(200, { ok: true })
    expect(headers).not.toHaveProperty('retry-after')
    expect(headers['cache-control']).not.toBe('no-store')
  })

  test('counts as it would: a real limiter of the same name takes over from there', async () => {
    const store = new MemoryStore({ sweepSeconds: false })
    const keyFn = () => 'k'
    const app = appWith(express, create({ store, keyFn }))
    for (let i = 0; i < 5; i += 1) await request(app).get('/').expect(200)
    const real = appWith(express, create({ store, keyFn, dryRun: false }))
    await request(real).get('/').expect(429)
  })

  test('is one limiter’s matter: another on the route denies', async () => {
    const store = new MemoryStore({ sweepSeconds: false })
    const app = appWith(
      express,
      create({ store, name: 'new', limit: 1 }),
      create({ store, name: 'old', limit: 2, dryRun: false }),
    )
    await request(app).get('/').expect(200)
    await request(app).get('/').expect(200)
    const denied = await request(app).get('/').expect(429)
    expect(denied.body['violated-policies']).toEqual(['old'])
  })

  test('never calls handler and message', async () => {
    const answer = jest.fn()
    await request(appWith(express, create({ limit: 0, handler: answer, message: answer })))
      .get('/')
      .expect(200)
    expect(answer).not.toHaveBeenCalled()
  })

  test('reports each denial to the hooks', async () => {
    const onDecision = jest.fn()
    const onDenied = jest.fn()
    const app = appWith(express, create({ limit: 1, onDecision, onDenied }))
    for (let i = 0; i < 3; i += 1) await request(app).get('/').expect(200)
    expect(onDecision).toHaveBeenCalledTimes(3)
    expect(onDenied.mock.calls.map(([decision]) => decision)).toEqual([
      expect.objectContaining({ outcome: 'denied', wouldDeny: true, allowed: true }),
      expect.objectContaining({ outcome: 'denied', wouldDeny: true, allowed: true }),
    ])
  })

  test('gives a hit back by outcome as a real one', async () => {
    const limiter = create({ skipSuccessfulRequests: true })
    const app = appWith(express, limiter)
    for (let i = 0; i < 3; i += 1) await request(app).get('/').expect(200)
    expect(await limiter.peek('127.0.0.1')).toMatchObject({ used: 0 })
  })

  test('of several limits tells which would have denied', async () => {
    const limiter = rateLimit({
      store: new MemoryStore({ sweepSeconds: false }),
      dryRun: true,
      limits: [
        { name: 'a', limit: 5, windowSeconds: 60, keyFn: () => 'k' },
        { name: 'b', limit: 0, windowSeconds: 60, keyFn: () => 'k' },
      ],
    })
    const app = appWith(express, limiter)
    await request(app).get('/').expect(200)
    const { limits = [] } = app.handled[0]?.rateLimit ?? {}
    expect(limits.map(({ policy, denied }) => [policy, denied])).toEqual([
      ['a', false],
      ['b', true],
    ])
  })

  describe.each(failures)('on a store that %s', (_, fail) => {
    test.each([
      ['deny', true],
      ['allow', false],
    ] as const)('with onStoreError "%s" it lets through, and says so', async (onStoreError, wouldDeny) => {
      const store = new WatchedStore()
      store.before = fail
      const app = appWith(express, create({ store, onStoreError, timeoutMs: 20 }))
      const { headers } = await request(app).get('/').expect(200)
      expect(headers).not.toHaveProperty('retry-after')
      const decision = app.handled[0]?.rateLimit as DegradedDecision
      expect(decision).toMatchObject({ outcome: 'degraded', allowed: true, wouldDeny })
    })
  })

  test('what is an error stays one', async () => {
    const app = appWith(express, create({ keyFn: () => '' }))
    await request(app).get('/').expect(500)
  })
})

test('a Limiter has it too', async () => {
  stopTime()
  const store = new MemoryStore({ sweepSeconds: false })
  const limiter = new Limiter({ store, limit: 1, windowSeconds: 60, dryRun: true })
  expect(await limiter.hit('k')).toMatchObject({ outcome: 'allowed', allowed: true, wouldDeny: false })
  expect(await limiter.hit('k')).toMatchObject({
    outcome: 'denied',
    allowed: true,
    wouldDeny: true,
    retryAfterSeconds: 60,
  })
  const denied = await limiter.hit('k')
  expect(await limiter.refund(denied)).toBe(false)
})
