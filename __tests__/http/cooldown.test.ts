import type { Express } from 'express'
import { type CooldownOptions, cooldown, MemoryStore, SqliteStore, type Store } from 'express-sql-rate-limit'
import request from 'supertest'
import { passTime, stopTime } from '../limiter/moving-time.js'
import { failures, SECRETS, WatchedStore } from '../limiter/watched-store.js'
import { appWith, expressVersions } from './serve.js'

const stores: [string, () => Store][] = [
  ['memory', () => new MemoryStore({ sweepSeconds: false })],
  ['SQLite', () => new SqliteStore({ filename: ':memory:', sweepSeconds: false })],
]

const create = (options: Partial<CooldownOptions> = {}) =>
  cooldown({
    store: new MemoryStore({ sweepSeconds: false }),
    seconds: 3600,
    keyFn: (req) => `claim:${req.get('x-user') ?? 'ann'}`,
    timeoutMs: 60_000,
    logger: { error() {} },
    ...options,
  })

const post = (app: Express, user = 'ann') => request(app).post('/').set('x-user', user)

describe.each(expressVersions)('a cooldown on Express %s', (_, express) => {
  beforeEach(stopTime)

  describe.each(stores)('on the %s store', (_, createStore) => {
    test('allows one use a period, exactly', async () => {
      const store = createStore()
      const app = appWith(express, create({ store }))
      for (let i = 0; i < 5; i += 1) {
        await post(app).expect(200)
        await post(app).expect(429)
        passTime(3_599_999)
        await post(app).expect(429)
        passTime(1)
      }
      expect(app.handled).toHaveLength(5)
      await store.close()
    })

    test('hazard 151: of 50 uses at once one passes', async () => {
      const store = createStore()
      const app = appWith(express, create({ store }))
      const server = app.listen(0)
      const responses = await Promise.all(Array.from({ length: 50 }, () => request(server).post('/')))
      server.close()
      expect(responses.filter(({ status }) => status === 200)).toHaveLength(1)
      expect(responses.filter(({ status }) => status === 429)).toHaveLength(49)
      await store.close()
    })
  })

  test('hazard 122: knocking meanwhile makes nobody wait longer', async () => {
    const app = appWith(express, create({ seconds: 5 }))
    const statuses: number[] = []
    for (let i = 0; i < 100; i += 1) {
      statuses.push((await post(app)).status)
      passTime(100)
    }
    expect(statuses.filter((status) => status === 200)).toHaveLength(2)
  })

  test('is one for each key', async () => {
    const app = appWith(express, create())
    for (const user of ['ann', 'bob']) await post(app, user).expect(200)
    for (const user of ['ann', 'bob']) await post(app, user).expect(429)
  })

  test('tells when the next use is allowed, as a time and in seconds', async () => {
    const app = appWith(express, create({ name: 'daily' }))
    await post(app).expect(200)
    passTime(600_000)
    const response = await post(app).expect(429)
    expect(response.headers['retry-after']).toBe('3000')
    expect(response.headers['content-type']).toBe('application/problem+json')
    expect(response.headers['cache-control']).toBe('no-store')
    expect(JSON.parse(response.text)).toMatchObject({
      status: 429,
      'violated-policies': ['daily'],
      waitSeconds: 3000,
      nextUseAt: '2026-01-05T13:00:00.000Z',
    })
  })

  test('who comes at the time that was told is admitted, and a second earlier is not', async () => {
    const app = appWith(express, create({ seconds: 90.5 }))
    for (let i = 0; i < 20; i += 1) {
      passTime((i * 137) % 1000)
      await post(app).expect(200)
      passTime(i * 777)
      const { nextUseAt } = JSON.parse((await post(app).expect(429)).text)
      passTime(Date.parse(nextUseAt) - Date.now() - 1000)
      await post(app).expect(429)
      passTime(1000)
    }
  })

  test('peek tells it beforehand, and uses nothing', async () => {
    const claims = create()
    const app = appWith(express, claims)
    for (let i = 0; i < 3; i += 1)
      expect(await claims.peek('claim:ann')).toEqual({ ready: true, waitSeconds: 0, nextUseAt: null })
    await post(app).expect(200)
    passTime(1500)
    const waiting = { ready: false, waitSeconds: 3599, nextUseAt: '2026-01-05T13:00:00.500Z' }
    expect(await claims.peek('claim:ann')).toEqual(waiting)
    expect(await claims.peek('claim:bob')).toMatchObject({ ready: true })
    passTime(3_598_500)
    expect(await claims.peek('claim:ann')).toMatchObject({ ready: true })
    await post(app).expect(200)
  })

  test('a reset ends it, and a refund gives the use back, once', async () => {
    const claims = create()
    const app = appWith(express, claims)
    await post(app).expect(200)
    await claims.reset('claim:ann')
    await post(app).expect(200)
    const decision = app.handled[1]?.rateLimit
    if (decision === undefined) throw new Error('no decision')
    expect(await claims.refund(decision)).toBe(true)
    expect(await claims.refund(decision)).toBe(false)
    await post(app).expect(200)
    await post(app).expect(429)
  })

  test('with skipFailedRequests a use that failed is none', async () => {
    const app = express()
    app.post('/', create({ skipFailedRequests: true }), (req, res) => {
      res.status(req.get('x-fail') === undefined ? 200 : 500).end()
    })
    await post(app).set('x-fail', 'yes').expect(500)
    await post(app).expect(200)
    await post(app).expect(429)
  })

  test('answers with the status and problem type that it is given', async () => {
    const app = appWith(express, create({ statusCode: 403, problemType: 'https://example.com/too-soon' }))
    await post(app).expect(200)
    const response = await post(app).expect(403)
    expect(JSON.parse(response.text)).toMatchObject({
      status: 403,
      type: 'https://example.com/too-soon',
      waitSeconds: 3600,
    })
  })

  describe.each(failures)('hazard 109: on a store that %s', (_, fail) => {
    test('nobody passes, and nothing of the failure is told', async () => {
      jest.useRealTimers()
      const store = new WatchedStore()
      store.before = fail
      const claims = create({ store, timeoutMs: 20 })
      const app = appWith(express, claims)
      const response = await post(app).expect(503)
      expect(response.headers['retry-after']).toMatch(/^[1-9]\d*$/)
      expect(JSON.stringify([response.headers, response.text])).not.toMatch(SECRETS)
      expect([app.handled, app.errors]).toEqual([[], []])
      await expect(claims.peek('claim:ann')).rejects.toMatchObject({ name: 'StoreError' })
    })
  })
})

describe('misuse is a TypeError', () => {
  test.each<[string, unknown]>([
    ...[undefined, null, 0, -1, '60', Number.NaN, 31_536_001].map((value): [string, unknown] => [
      'seconds',
      value,
    ]),
    ['keyFn', undefined],
    ['keyFn', 'claim'],
    ['store', undefined],
    ['name', 'a b'],
    ['unknown', 1],
  ])('%s: %p', (option, value) => {
    expect(() => create({ [option]: value })).toThrow(TypeError)
  })

  // Each of them would bend the rule, or fail open.
  test.each<[string, unknown]>([
    ['cost', 2],
    ['limit', 5],
    ['limits', []],
    ['windowSeconds', 1],
    ['algorithm', 'fixed-window'],
    ['onStoreError', 'allow'],
    ['dryRun', true],
    ['handler', () => {}],
    ['message', 'wait'],
  ])('%s, which a cooldown does not have', (option, value) => {
    expect(() => create({ [option]: value })).toThrow(TypeError)
  })

  test('an empty key for peek', async () => {
    await expect(create().peek('')).rejects.toThrow(TypeError)
  })
})
