import { mkdtempSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import express5, { type Request, type Response } from 'express'
import { type Options, rateLimit } from 'express-rate-limit'
import {
  type ExpressRateLimitStoreOptions,
  Limiter,
  MemoryStore,
  MysqlStore,
  SqliteStore,
  type Store,
  toExpressRateLimitStore,
} from 'express-sql-rate-limit'
import request from 'supertest'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { appWith, expressVersions, portOf, serve } from '../serve.js'

/** Longer than any test, and in no test does a fixed window of it end. */
const LONG_MS = 30 * 86_400_000
/** For machines under load: what is slow is no failure here. */
const TIMEOUT_MS = 20_000

/** express-rate-limit with a store of this package, on the real thing. */
function limitsThrough(open: () => Store): void {
  describe.each(expressVersions)('on Express %s', (_, express) => {
    let store: Store
    let limiters: number
    /** What express-rate-limit finds wrong with a store, it logs. */
    const logger = { error: jest.fn(), warn: jest.fn() }

    beforeEach(() => {
      store = open()
      limiters = 0
      logger.error.mockClear()
      logger.warn.mockClear()
    })
    afterEach(async () => {
      await store.close()
      expect(logger.error.mock.calls).toEqual([])
      expect(logger.warn.mock.calls).toEqual([])
    })

    const create = (
      options: Partial<Options> = {},
      adapterOptions: Partial<ExpressRateLimitStoreOptions> = {},
      on = store,
    ) => {
      limiters += 1
      return rateLimit({
        windowMs: LONG_MS,
        limit: 3,
        logger,
        store: toExpressRateLimitStore(on, {
          name: `limiter-${limiters}`,
          timeoutMs: TIMEOUT_MS,
          ...adapterOptions,
        }),
        ...options,
      })
    }

    describe.each<[string, Partial<Options>, Partial<ExpressRateLimitStoreOptions>]>([
      ['a sliding window', {}, {}],
      ['a fixed window', {}, { algorithm: 'fixed-window' }],
      ['a limit that is a function', { limit: async () => 3 }, {}],
    ])('%s', (_, options, adapterOptions) => {
      it('lets requests pass up to the limit, then refuses with the wait, and tells how many', async () => {
        const app = appWith(express, create({ standardHeaders: 'draft-8', ...options }, adapterOptions))
        for (const remaining of [2, 1, 0]) {
          const { headers } = await request(app).get('/').expect(200)
          expect(headers['x-ratelimit-remaining']).toBe(String(remaining))
          expect(headers.ratelimit).toMatch(new RegExp(`^"3-in-30days"; r=${remaining}; t=\\d+$`))
          expect(headers).not.toHaveProperty('retry-after')
        }
        for (let i = 0; i < 3; i += 1) {
          const { headers } = await request(app).get('/').expect(429)
          const wait = Number(headers['retry-after'])
          expect(wait).toBeGreaterThan(0)
          expect(wait).toBeLessThanOrEqual(LONG_MS / 1000)
        }
        const [first] = app.handled as (Request & { rateLimit: unknown })[]
        expect(first?.rateLimit).toMatchObject({
          limit: 3,
          used: 1,
          remaining: 2,
          resetTime: expect.any(Date),
        })
      })

      it('admits exactly the limit of many requests at once', async () => {
        const limiter = create({ limit: 10, ...options }, adapterOptions)
        const server = await serve(appWith(express, limiter))
        const limit = options.limit === undefined ? 10 : 3
        const answers = await Promise.all(
          Array.from({ length: 60 }, () => fetch(`http://127.0.0.1:${portOf(server)}/`)),
        )
        const statuses = answers.map(({ status }) => status)
        expect(statuses.filter((status) => status === 200)).toHaveLength(limit)
        expect(statuses.filter((status) => status === 429)).toHaveLength(60 - limit)
      })

      it('shows a key and resets it', async () => {
        const limiter = create({ keyGenerator: () => 'k', ...options }, adapterOptions)
        const app = appWith(express, limiter)
        for (const status of [200, 200, 200, 429]) await request(app).get('/').expect(status)
        expect((await limiter.getKey('k'))?.totalHits).toBeGreaterThanOrEqual(3)
        await limiter.resetKey('k')
        expect(await limiter.getKey('k')).toBeUndefined()
        await request(app).get('/').expect(200)
      })
    })

    it('several limiters on a route count apart, and warn of nothing', async () => {
      const app = appWith(express, create({ limit: 4 }), create({ limit: 2 }))
      for (const status of [200, 200, 429, 429, 429]) await request(app).get('/').expect(status)
      const counted = await new Limiter({
        store,
        name: 'limiter-1',
        limit: 4,
        windowSeconds: LONG_MS / 1000,
      }).peek('127.0.0.1')
      // supertest comes by IPv4 or by IPv4 in IPv6; express-rate-limit makes one key of both.
      expect(counted).toMatchObject({ used: 4, remaining: 0 })
    })

    describe('counting by outcome', () => {
      const windowMs = 60_000
      /** Requests under way, each with what lets it end. */
      const handlers = (...limiters: ReturnType<typeof rateLimit>[]) => {
        const app = express()
        const ends = new Map<string, (status: number) => void>()
        for (const limiter of limiters) app.use(limiter)
        app.get('/:name', (req: Request, res: Response) => {
          ends.set(String(req.params.name), (status) => res.sendStatus(status))
        })
        return { app, ends }
      }
      const until = async (isSo: () => unknown): Promise<void> => {
        for (let i = 0; i < 1000 && !(await isSo()); i += 1) await pause(5)
        expect(await isSo()).toBeTruthy()
      }
      it.each<[string, Partial<Options>, number, number]>([
        ['skipSuccessfulRequests', { skipSuccessfulRequests: true }, 200, 401],
        ['skipFailedRequests', { skipFailedRequests: true }, 401, 200],
      ])('%s gives back a hit by outcome, and no other', async (_, options, skipped, counted) => {
        const limiter = create({ windowMs, keyGenerator: () => 'k', ...options })
        const under = handlers(limiter)
        const port = portOf(await serve(under.app))
        const statuses: number[] = []
        for (const [name, status] of [
          ['a', skipped],
          ['b', counted],
          ['c', skipped],
        ] as const) {
          const answer = fetch(`http://127.0.0.1:${port}/${name}`)
          await until(() => under.ends.has(name))
          under.ends.get(name)?.(status)
          statuses.push((await answer).status)
        }
        expect(statuses).toEqual([skipped, counted, skipped])
        await until(async () => (await limiter.getKey('k'))?.totalHits === 1)
      })

      it('gives back the hit of the very request, of several under way with one key', async () => {
        const limiter = create({ windowMs, keyGenerator: () => 'k', skipSuccessfulRequests: true })
        const under = handlers(limiter)
        const port = portOf(await serve(under.app))
        const answers: Promise<globalThis.Response>[] = []
        for (const request of ['first', 'second', 'third']) {
          answers.push(fetch(`http://127.0.0.1:${port}/${request}`))
          await until(() => under.ends.has(request))
        }
        const refunded: number[] = []
        const refund = store.refund.bind(store)
        store.refund = async (refunds, signal) => {
          refunded.push(...refunds.map(({ at }) => at))
          return refund(refunds, signal)
        }
        // Not in the order of their hits.
        for (const request of ['second', 'third', 'first']) {
          under.ends.get(request)?.(200)
          await until(() => refunded.length === ['second', 'third', 'first'].indexOf(request) + 1)
        }
        await Promise.all(answers)
        const [second, third, first] = refunded as [number, number, number]
        expect(first).toBeLessThan(second)
        expect(second).toBeLessThan(third)
        await until(async () => (await limiter.getKey('k'))?.totalHits === 0)
      })

      it('gives back the hits that the very request has taken of two limiters with one key', async () => {
        const skip = { windowMs, keyGenerator: () => 'k', skipSuccessfulRequests: true }
        const limiters = [create(skip), create(skip)]
        const under = handlers(...limiters)
        const port = portOf(await serve(under.app))
        const answers: Promise<globalThis.Response>[] = []
        for (const request of ['first', 'second']) {
          answers.push(fetch(`http://127.0.0.1:${port}/${request}`))
          await until(() => under.ends.has(request))
        }
        const refunded: { key: string; at: number }[] = []
        const refund = store.refund.bind(store)
        store.refund = async (refunds, signal) => {
          refunded.push(...refunds)
          return refund(refunds, signal)
        }
        for (const [i, request] of ['first', 'second'].entries()) {
          under.ends.get(request)?.(200)
          await until(() => refunded.length === 2 * (i + 1))
        }
        await Promise.all(answers)
        const [first, alsoFirst, second, alsoSecond] = refunded
        expect(new Set([first?.key, alsoFirst?.key]).size).toBe(2)
        expect(new Set([second?.key, alsoSecond?.key]).size).toBe(2)
        expect(Math.max(Number(first?.at), Number(alsoFirst?.at))).toBeLessThan(
          Math.min(Number(second?.at), Number(alsoSecond?.at)),
        )
        for (const limiter of limiters) await until(async () => (await limiter.getKey('k'))?.totalHits === 0)
      })

      it('a request that was refused gives nothing back, as it has taken nothing', async () => {
        const limiter = create({ windowMs, limit: 1, keyGenerator: () => 'k', skipFailedRequests: true })
        const under = handlers(limiter)
        const port = portOf(await serve(under.app))
        const slow = fetch(`http://127.0.0.1:${port}/slow`)
        await until(() => under.ends.has('slow'))
        for (let i = 0; i < 5; i += 1) {
          expect((await fetch(`http://127.0.0.1:${port}/refused-${i}`)).status).toBe(429)
          await pause(20)
        }
        under.ends.get('slow')?.(200)
        await slow
        await until(async () => (await limiter.getKey('k'))?.totalHits === 1)
      })

      it('a client who hangs up gets his hit back with skipFailedRequests', async () => {
        const limiter = create({ windowMs, keyGenerator: () => 'k', skipFailedRequests: true })
        const under = handlers(limiter)
        const port = portOf(await serve(under.app))
        const leaving = new AbortController()
        const answer = fetch(`http://127.0.0.1:${port}/gone`, { signal: leaving.signal })
        await until(() => under.ends.has('gone'))
        leaving.abort()
        await expect(answer).rejects.toThrow()
        await until(async () => (await limiter.getKey('k'))?.totalHits === 0)
      })

      it('in a fixed window each refused request that is not to count is taken out again', async () => {
        const limiter = create(
          { windowMs: LONG_MS, limit: 2, keyGenerator: () => 'k', skipFailedRequests: true },
          { algorithm: 'fixed-window' },
        )
        const app = appWith(express, limiter)
        for (const status of [200, 200, 429, 429, 429]) await request(app).get('/').expect(status)
        await until(async () => (await limiter.getKey('k'))?.totalHits === 2)
        await request(app).get('/').expect(429)
      })
    })
  })
}

describe('express-rate-limit on MemoryStore', () => limitsThrough(() => new MemoryStore()))

describe('express-rate-limit on SqliteStore', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rate-limit-'))
  let files = 0
  afterAll(() => rmSync(folder, { recursive: true }))

  limitsThrough(() => {
    files += 1
    return new SqliteStore({ filename: join(folder, `${files}.sqlite`) })
  })
})

describeServers('express-rate-limit on MysqlStore', ({ kind }) => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(kind)
  })
  afterAll(() => database.drop())
  afterEach(() => database.query('DELETE FROM rate_events; DELETE FROM rate_keys'))

  limitsThrough(() => new MysqlStore({ uri: database.uri }))

  it('several processes, as two stores are, admit exactly the limit together', async () => {
    const stores = [new MysqlStore({ uri: database.uri }), new MysqlStore({ uri: database.uri })]
    const servers = await Promise.all(
      stores.map((store) =>
        serve(
          appWith(
            express5,
            rateLimit({
              windowMs: LONG_MS,
              limit: 25,
              store: toExpressRateLimitStore(store, { name: 'shared', timeoutMs: TIMEOUT_MS }),
            }),
          ),
        ),
      ),
    )
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) => fetch(`http://127.0.0.1:${portOf(servers[i % 2] as Server)}/`)),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(25)
    await Promise.all(stores.map((store) => store.close()))
  })

  it('the first requests wait for the tables', async () => {
    await database.query('DROP TABLE rate_keys, rate_events, rate_limit_schema')
    const store = new MysqlStore({ uri: database.uri })
    const limiter = rateLimit({
      store: toExpressRateLimitStore(store, { name: 'new', timeoutMs: TIMEOUT_MS }),
    })
    const app = appWith(express5, limiter)
    const answers = await Promise.all([1, 2, 3].map(() => request(app).get('/')))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    await store.close()
  })
})
