import { once } from 'node:events'
import { connect } from 'node:net'
import type { Request, Response } from 'express'
import {
  type Algorithm,
  MemoryStore,
  type RateLimitMiddleware,
  type RateLimitOptions,
  rateLimit,
  SqliteStore,
  type Store,
} from 'express-sql-rate-limit'
import request from 'supertest'
import { passTime, stopTime } from '../limiter/moving-time.js'
import { failures, gate, WatchedStore } from '../limiter/watched-store.js'
import { expressVersions, portOf, serve } from './serve.js'

const stores: [string, () => Store][] = [
  ['memory', () => new MemoryStore({ sweepSeconds: false })],
  ['SQLite', () => new SqliteStore({ filename: ':memory:', sweepSeconds: false })],
]
const algorithms: Algorithm[] = ['sliding-window', 'fixed-window']

const create = (options: Partial<RateLimitOptions> = {}) =>
  rateLimit({
    store: new MemoryStore({ sweepSeconds: false }),
    limit: 5,
    windowSeconds: 60,
    timeoutMs: 60_000,
    onStoreError: 'deny',
    logger: { error() {} },
    keyFn: () => 'k',
    ...options,
  })

const usedOf = async (limiter: RateLimitMiddleware): Promise<number | null> => (await limiter.peek('k')).used

describe.each(expressVersions)('on Express %s', (_, express) => {
  /** An application that answers `GET /404` with 404, and any other status likewise. */
  function answering(limiter: RateLimitMiddleware, before: (req: Request) => unknown = () => {}) {
    const app = express()
    app.use(limiter)
    app.get('/:status', async (req: Request, res: Response) => {
      await before(req)
      res.status(Number(req.params.status)).send('answer')
    })
    return app
  }

  describe.each(stores)('on the %s store', (_, createStore) => {
    test.each([
      ['skipSuccessfulRequests', [200, 204, 302, 399], [400, 401, 404, 500, 503]],
      ['skipFailedRequests', [400, 401, 404, 429, 500], [200, 201, 302]],
    ] as const)('%s gives back the hit of %p, and not of %p', async (option, back, kept) => {
      const store = createStore()
      const limiter = create({ store, limit: 100, [option]: true })
      const app = answering(limiter)
      for (const status of back) await request(app).get(`/${status}`).redirects(0).expect(status)
      expect(await usedOf(limiter)).toBe(0)
      for (const status of kept) await request(app).get(`/${status}`).redirects(0).expect(status)
      expect(await usedOf(limiter)).toBe(kept.length)
      await store.close()
    })

    test('exactly the hit that was taken: its cost, and nobody else’s', async () => {
      const store = createStore()
      const limiter = create({ store, limit: 100, cost: 7, skipFailedRequests: true })
      await limiter.hit('k', { cost: 3 })
      await request(answering(limiter)).get('/500').expect(500)
      expect(await usedOf(limiter)).toBe(3)
      await store.close()
    })

    test.each(algorithms)(
      'hazard 120: a slow 500 across the edge of a %s leaves exactly the limit to the next window',
      async (algorithm) => {
        stopTime()
        const store = createStore()
        const { opened, open } = gate()
        const limiter = create({ store, algorithm, limit: 3, skipFailedRequests: true })
        const server = await serve(answering(limiter, (req) => (req.path === '/500' ? opened : null)))
        const statusOf = async (path: string) => (await request(server).get(path)).status
        const slow = [statusOf('/500'), statusOf('/500')]
        while ((await usedOf(limiter)) !== 2) await new Promise(setImmediate)
        passTime(60_001)
        expect([await statusOf('/200'), await statusOf('/200')]).toEqual([200, 200])
        open()
        expect(await Promise.all(slow)).toEqual([500, 500])
        expect(await usedOf(limiter)).toBe(2)
        expect([await statusOf('/200'), await statusOf('/200'), await statusOf('/200')]).toEqual([
          200, 429, 429,
        ])
        await store.close()
      },
    )
  })

  test('either option with the other gives back every answer', async () => {
    const limiter = create({ limit: 1, skipFailedRequests: true, skipSuccessfulRequests: true })
    const app = answering(limiter)
    for (const status of [200, 500, 200, 404]) await request(app).get(`/${status}`).expect(status)
    expect(await usedOf(limiter)).toBe(0)
  })

  test('neither gives anything back by default', async () => {
    const limiter = create()
    for (const status of [200, 500]) await request(answering(limiter)).get(`/${status}`).expect(status)
    expect(await usedOf(limiter)).toBe(2)
  })

  test('all limits of one decision are given back', async () => {
    const limits = ['a', 'b'].map((name) => ({ name, limit: 2, windowSeconds: 60, keyFn: () => 'k' }))
    const store = new MemoryStore({ sweepSeconds: false })
    const limiter = rateLimit({ store, limits, skipFailedRequests: true })
    await request(answering(limiter)).get('/500').expect(500)
    expect((await limiter.peek('k')).limits.map(({ used }) => used)).toEqual([0, 0])
  })

  describe('requestWasSuccessful', () => {
    test.each([undefined, null, 1, 'yes', {}])(
      'gives nothing back to a failure that it does not call one (%p)',
      async (answer) => {
        const limiter = create({
          skipFailedRequests: true,
          requestWasSuccessful: (() => answer) as unknown as () => boolean,
        })
        await request(answering(limiter)).get('/500').expect(500)
        expect(await usedOf(limiter)).toBe(1)
      },
    )

    const successful404 = (_req: Request, res: Response) => res.statusCode === 404
    test.each<[string, RateLimitOptions['requestWasSuccessful']]>([
      ['sync', successful404],
      ['async', async (req, res) => successful404(req, res)],
    ])('decides what a success is (%s)', async (_, requestWasSuccessful) => {
      const limiter = create({ skipSuccessfulRequests: true, requestWasSuccessful })
      const app = answering(limiter)
      await request(app).get('/404').expect(404)
      expect(await usedOf(limiter)).toBe(0)
      await request(app).get('/200').expect(200)
      expect(await usedOf(limiter)).toBe(1)
    })

    test.each<[string, () => unknown]>([
      ['throws', () => JSON.parse('')],
      ['rejects', () => Promise.reject(new Error('no'))],
      ['gives a truthy object', () => ({})],
      ['gives undefined', () => undefined],
    ])('that %s gives nothing back for a success, and the answer stays', async (_, decide) => {
      const limiter = create({ skipSuccessfulRequests: true, requestWasSuccessful: decide as () => boolean })
      await request(answering(limiter)).get('/200').expect(200, 'answer')
      expect(await usedOf(limiter)).toBe(1)
    })
  })

  test.each(['skipSuccessfulRequests', 'skipFailedRequests'])(
    'hazards 118 and 119: with %s, 20 clients who leave before their 401 are counted, and the next gets 429',
    async (option) => {
      const limiter = create({ [option]: true })
      const server = await serve(answering(limiter, (req) => left.get(req.socket)))
      const left = new Map<Request['socket'], Promise<unknown>>()
      for (let i = 0; i < 20; i += 1) {
        const socket = connect(portOf(server), '127.0.0.1')
        socket.write('GET /401 HTTP/1.1\r\nHost: x\r\n\r\n')
        const [req] = await once(server, 'request')
        const gone = new Promise((resolve) => req.socket.once('close', resolve))
        left.set(req.socket, gone)
        socket.resetAndDestroy()
        await gone
        await new Promise(setImmediate)
      }
      expect(await usedOf(limiter)).toBe(5)
      await request(server).get('/401').expect(429)
    },
  )

  describe('hazard 121: a denial', () => {
    test('is not counted and not given back: 20 requests at limit 5 are 5 and 15', async () => {
      const limiter = create({ skipFailedRequests: true })
      const app = answering(limiter)
      const statuses: number[] = []
      for (let i = 0; i < 20; i += 1) statuses.push((await request(app).get('/200')).status)
      expect(statuses).toEqual([...Array(5).fill(200), ...Array(15).fill(429)])
      expect(await usedOf(limiter)).toBe(5)
    })

    test('of a fixed window stays an attempt', async () => {
      const limiter = create({ algorithm: 'fixed-window', limit: 1, skipFailedRequests: true })
      const app = answering(limiter)
      await request(app).get('/200').expect(200)
      await request(app).get('/200').expect(429)
      expect(await usedOf(limiter)).toBe(2)
    })

    test('that the application answers with 200 is no success', async () => {
      const handler: RateLimitOptions['handler'] = (_req, res) => res.status(200).send('slow down')
      const limiter = create({ limit: 1, skipSuccessfulRequests: true, handler })
      const app = answering(limiter)
      await request(app).get('/401').expect(401)
      for (let i = 0; i < 3; i += 1) await request(app).get('/401').expect(200, 'slow down')
      expect(await usedOf(limiter)).toBe(1)
    })
  })

  test.each(failures.slice(0, 4))(
    'a store that %s when it is to give back leaves the answer alone',
    async (_, fail) => {
      const store = new WatchedStore()
      const limiter = create({ store, skipFailedRequests: true })
      const app = answering(limiter, () => {
        store.before = fail
      })
      await request(app).get('/500').expect(500, 'answer')
      store.before = () => {}
      expect(await usedOf(limiter)).toBe(1)
    },
  )

  test('what the handler gave back itself is not given back twice', async () => {
    const limiter = create({ limit: 100, skipFailedRequests: true })
    await limiter.hit('k', { cost: 10 })
    const app = answering(limiter, async (req) => {
      if (req.rateLimit) await limiter.refund(req.rateLimit)
    })
    await request(app).get('/500').expect(500)
    expect(await usedOf(limiter)).toBe(10)
  })
})
