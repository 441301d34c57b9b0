import { rateLimit } from 'express-rate-limit'
import {
  type ExpressRateLimitStoreOptions,
  MemoryStore,
  type Store,
  toExpressRateLimitStore,
} from 'express-sql-rate-limit'
import request from 'supertest'
import { failures, WatchedStore } from '../../limiter/watched-store.js'
import { appWith, expressVersions } from '../serve.js'

const express = expressVersions[1]?.[1] as (typeof expressVersions)[number][1]

const create = (options: Partial<ExpressRateLimitStoreOptions> = {}, store: Store = new MemoryStore()) =>
  toExpressRateLimitStore(store, { name: 'api', ...options })

describe('toExpressRateLimitStore refuses', () => {
  test.each<[string, unknown]>([
    ['no options', undefined],
    ['no name', {}],
    ['a name with blanks', { name: 'a b' }],
    ['an unknown option', { name: 'a', prefix: 'b' }],
    ['an unknown algorithm', { name: 'a', algorithm: 'token-bucket' }],
    ['no time to answer in', { name: 'a', timeoutMs: 0 }],
    ['no hits that may wait', { name: 'a', maxPending: 0 }],
    ['a secret that is too short', { name: 'a', hashKeys: 'short' }],
  ])('%s', (_, options) => {
    expect(() => toExpressRateLimitStore(new MemoryStore(), options as ExpressRateLimitStoreOptions)).toThrow(
      TypeError,
    )
  })

  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['a pool of a driver', { query() {}, execute() {} }],
  ])('%s in the place of a store', (_, store) => {
    expect(() => toExpressRateLimitStore(store as Store, { name: 'a' })).toThrow(TypeError)
  })

  test('a name that is taken on the store, but not one that is taken on another', () => {
    const store = new MemoryStore()
    create({}, store)
    expect(() => create({}, store)).toThrow(TypeError)
    expect(create({ name: 'other' }, store).prefix).toBe('other:')
    expect(create().prefix).toBe('api:')
  })
})

describe('init refuses', () => {
  test.each<[string, object]>([
    ['no window', {}],
    ['a window of 0', { windowMs: 0 }],
    ['a window that is a text', { windowMs: '60000' }],
    ['a window of more than a year', { windowMs: 366 * 86_400_000 }],
    ['a limit that is no number', { windowMs: 1000, limit: Number.NaN }],
    ['a limit below 0', { windowMs: 1000, limit: -1 }],
  ])('%s, and then every hit', async (_, options) => {
    const store = create()
    expect(() => store.init(options as { windowMs: number })).toThrow(TypeError)
    await expect(store.increment('a')).rejects.toThrow(TypeError)
    await expect(store.get('a')).rejects.toThrow(TypeError)
  })

  test('a sliding window where the limit is a function, because no store is told what it returned', async () => {
    const store = create({ algorithm: 'sliding-window' })
    expect(() => store.init({ windowMs: 1000, limit: () => 5 })).toThrow(TypeError)
    await expect(store.increment('a')).rejects.toThrow(TypeError)
  })

  test.each<[string, object]>([
    ['another window', { windowMs: 2000, limit: 5 }],
    ['another limit', { windowMs: 1000, limit: 6 }],
    ['hits that are given back', { windowMs: 1000, limit: 5, skipFailedRequests: true }],
  ])('a second limiter with %s, and then every hit of both', async (_, options) => {
    const store = create()
    store.init({ windowMs: 1000, limit: 5 })
    store.init({ windowMs: 1000, limit: 5 })
    await store.increment('a')
    expect(() => store.init(options as { windowMs: number })).toThrow(TypeError)
    await expect(store.increment('a')).rejects.toThrow(TypeError)
  })
})

describe('a limit', () => {
  const admitted = async (limit: unknown, limiterOf = create()): Promise<number> => {
    const logger = { error() {}, warn() {} }
    const limiter = rateLimit({ windowMs: 60_000, limit: limit as number, store: limiterOf, logger })
    const app = appWith(express, limiter)
    for (let i = 0; i < 5; i += 1) await request(app).get('/')
    return app.handled.length
  }

  test.each<[string, unknown, number]>([
    ['0 admits nothing', 0, 0],
    ['2.5 admits two', 2.5, 2],
    ['Infinity admits all', Number.POSITIVE_INFINITY, 5],
    ['as an async function admits what it says', async () => 3, 3],
  ])('of %s', async (_, limit, expected) => {
    expect(await admitted(limit)).toBe(expected)
    expect(await admitted(limit, create({ algorithm: 'fixed-window' }))).toBe(expected)
  })

  test('by its old name `max` holds too', async () => {
    const store = create()
    store.init({ windowMs: 60_000, max: 1 })
    expect((await store.increment('a')).totalHits).toBe(1)
    // Denied hits are not counted, so this is a sliding window of that limit.
    for (let i = 0; i < 3; i += 1) expect((await store.increment('a')).totalHits).toBe(2)
  })

  test('of a fixed window goes on counting what is denied, for what goes by the excess', async () => {
    const store = create({ algorithm: 'fixed-window' })
    store.init({ windowMs: 60_000, limit: 2 })
    for (let i = 1; i <= 20; i += 1) expect((await store.increment('a')).totalHits).toBe(i)
  })
})

describe('a store that fails', () => {
  const logger = { error: jest.fn(), warn: jest.fn() }
  const down = () => {
    const store = new WatchedStore()
    store.before = failures[0]?.[1] as () => unknown
    return store
  }
  beforeEach(() => logger.error.mockClear())

  test.each(failures)('and %s is an error for the application', async (_, before) => {
    const store = new WatchedStore()
    store.before = before
    const app = appWith(express, rateLimit({ store: create({ timeoutMs: 50 }, store), logger }))
    await request(app).get('/').expect(500)
    expect(app.errors[0]).toMatchObject({ name: 'StoreError', code: expect.stringMatching(/^ERR_STORE_/) })
    expect(app.handled).toEqual([])
  })

  test.each(failures)('and %s lets requests pass with passOnStoreError', async (_, before) => {
    const store = new WatchedStore()
    store.before = before
    const app = appWith(
      express,
      rateLimit({ store: create({ timeoutMs: 50 }, store), logger, passOnStoreError: true }),
    )
    await request(app).get('/').expect(200)
    expect(logger.error).toHaveBeenCalledTimes(1)
    expect(logger.error.mock.calls[0]?.[0]).toMatchObject({ name: 'StoreError' })
  })

  test('and cannot give back keeps the hit, and rejects to nobody who may not listen', async () => {
    const store = new WatchedStore()
    const adapter = create({}, store)
    adapter.init({ windowMs: 60_000, limit: 5, skipFailedRequests: true })
    await adapter.increment('a')
    store.before = failures[0]?.[1] as () => unknown
    await adapter.decrement('a')
    store.before = () => {}
    expect((await adapter.get('a'))?.totalHits).toBe(1)
  })

  test('rejects what is asked by key too', async () => {
    const adapter = create({}, down())
    adapter.init({ windowMs: 60_000, limit: 5 })
    await expect(adapter.get('a')).rejects.toMatchObject({ code: 'ERR_STORE_CONNECTION' })
    await expect(adapter.resetKey('a')).rejects.toMatchObject({ code: 'ERR_STORE_CONNECTION' })
  })
})

test('a store that cannot list its keys says so when all of them are to be forgotten', async () => {
  const adapter = create({}, new WatchedStore())
  adapter.init({ windowMs: 60_000, limit: 5 })
  await expect(adapter.resetAll()).rejects.toThrow(TypeError)
})
