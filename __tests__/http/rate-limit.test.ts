import { once } from 'node:events'
import { connect } from 'node:net'
import type { RequestHandler } from 'express'
import {
  MemoryStore,
  type RateLimitOptions,
  rateLimit,
  SqliteStore,
  type Store,
} from 'express-sql-rate-limit'
import request from 'supertest'
import { passTime, stopTime } from '../limiter/moving-time.js'
import { failures, gate, SECRETS, WatchedStore } from '../limiter/watched-store.js'
import { appWith, exchange, expressVersions, portOf, serve, statusesOf } from './serve.js'

const stores: [string, () => Store][] = [
  ['memory', () => new MemoryStore({ sweepSeconds: false })],
  ['SQLite', () => new SqliteStore({ filename: ':memory:', sweepSeconds: false })],
]
const quiet = { error() {} }

const create = (options: Partial<RateLimitOptions> = {}) =>
  rateLimit({
    store: new MemoryStore({ sweepSeconds: false }),
    limit: 2,
    windowSeconds: 60,
    timeoutMs: 60_000,
    ...options,
  })

describe.each(expressVersions)('on Express %s', (_, express) => {
  describe('an allowed request', () => {
    test('is passed on once, with the decision and both headers', async () => {
      stopTime()
      const next = jest.fn()
      const limiter = create({ name: 'global' })
      const app = appWith(express, (req, res, through) =>
        limiter(req, res, () => {
          next()
          through()
        }),
      )
      const response = await request(app).get('/').expect(200, { ok: true })
      expect(next.mock.calls).toEqual([[]])
      expect(response.headers['ratelimit-policy']).toBe('"global";q=2;w=60')
      expect(response.headers.ratelimit).toBe('"global";r=1;t=60')
      expect(response.headers).not.toHaveProperty('retry-after')
      expect(app.handled[0]?.rateLimit).toEqual({
        outcome: 'allowed',
        allowed: true,
        policy: 'global',
        key: '127.0.0.1',
        limit: 2,
        used: 1,
        remaining: 1,
        retryAfterSeconds: 0,
        resetSeconds: 60,
        wouldDeny: false,
        limits: [
          expect.objectContaining({
            policy: 'global',
            key: '127.0.0.1',
            denied: false,
            used: 1,
            remaining: 1,
          }),
        ],
      })
    })

    test('keeps the body, the method and the path that it came with', async () => {
      const app = express()
      app.use(create(), express.json())
      app.post('/claim', (req, res) => {
        res.json(req.body)
      })
      await request(app).post('/claim').send({ user: 42 }).expect(200, { user: 42 })
    })
  })

  describe.each(stores)('a denied request on the %s store', (_, createStore) => {
    test('gets 429, and the handler never runs', async () => {
      const store = createStore()
      const app = appWith(express, create({ store }))
      const statuses: number[] = []
      for (let i = 0; i < 4; i += 1) statuses.push((await request(app).get('/')).status)
      expect(statuses).toEqual([200, 200, 429, 429])
      expect(app.handled).toHaveLength(2)
      expect(app.errors).toEqual([])
      await store.close()
    })

    test('hazard 131: of 30 requests in one packet exactly 5 pass', async () => {
      const store = createStore()
      const app = appWith(express, create({ store, limit: 5 }))
      const post = (end = '') => `POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n${end}\r\n`
      const bytes = post().repeat(29) + post('Connection: close\r\n')
      const statuses = statusesOf(await exchange(await serve(app), bytes))
      expect(statuses).toEqual([...Array(5).fill(200), ...Array(25).fill(429)])
      expect(app.handled).toHaveLength(5)
      await store.close()
    })
  })

  test('hazard 124: who obeys Retry-After is admitted, and a second earlier is not, 100 of 100 times', async () => {
    stopTime()
    const app = appWith(express, create({ limit: 3, windowSeconds: 10 }))
    const server = await serve(app)
    const get = () => request(server).get('/')
    for (let i = 0; i < 100; i += 1) {
      passTime((i * 137) % 1000)
      let response = await get()
      while (response.status === 200) response = await get()
      const retryAfter = response.headers['retry-after']
      expect(retryAfter).toMatch(/^[1-9]\d*$/)
      passTime((Number(retryAfter) - 1) * 1000)
      await get().expect(429)
      passTime(1000)
      await get().expect(200)
    }
  }, 60_000)

  describe('a handler of the application’s own', () => {
    test('answers a denial, with all headers set and the decision in hand', async () => {
      stopTime()
      const handler = jest.fn((_req, res, _next, decision) => res.status(429).send(decision.outcome))
      const app = appWith(express, create({ limit: 1, handler }))
      await request(app).get('/').expect(200)
      const denied = await request(app).get('/').expect(429, 'denied')
      expect(denied.headers).toMatchObject({
        'ratelimit-policy': '"default";q=1;w=60',
        ratelimit: '"default";r=0;t=60',
        'retry-after': '60',
      })
      expect(handler).toHaveBeenCalledTimes(1)
    })

    test('answers a refusal for a store that is down, too', async () => {
      const store = new WatchedStore()
      store.before = failures[0]?.[1] as () => unknown
      const handler: RateLimitOptions['handler'] = (_req, res, _next, decision) =>
        res.status(418).send(decision.outcome)
      const app = appWith(express, create({ store, handler, onStoreError: 'deny', logger: quiet }))
      await request(app).get('/').expect(418, 'degraded')
    })

    test('may let the request through after all', async () => {
      const app = appWith(express, create({ limit: 0, handler: (_req, _res, next) => next() }))
      await request(app).get('/').expect(200)
      expect(app.handled[0]?.rateLimit?.outcome).toBe('denied')
    })

    const failure = new Error('template is missing')
    test.each<[string, RateLimitOptions['handler']]>([
      [
        'throws',
        () => {
          throw failure
        },
      ],
      ['rejects', () => Promise.reject(failure)],
    ])('that %s is an error for the application', async (_, handler) => {
      const app = appWith(express, create({ limit: 0, handler: handler as never }))
      await request(app).get('/').expect(500)
      expect(app.errors).toEqual([failure])
      expect(app.handled).toEqual([])
    })
  })

  describe.each(failures)('hazard 109: a store that %s', (_, fail) => {
    async function ask(onStoreError: 'allow' | 'deny') {
      const store = new WatchedStore()
      store.before = fail
      const limiter = create({ store, onStoreError, timeoutMs: 20, logger: quiet })
      // Express 4 looks at no promise: a rejection would be nobody's.
      const settled: Promise<void>[] = []
      const app = appWith(express, (req, res, next) => {
        settled.push(limiter(req, res, next))
      })
      const response = await request(app).get('/')
      expect(await Promise.allSettled(settled)).toEqual([{ status: 'fulfilled', value: undefined }])
      expect(app.errors).toEqual([])
      return { app, response }
    }

    test('lets requests through by default, and claims nothing about the limit', async () => {
      const { app, response } = await ask('allow')
      expect(response.status).toBe(200)
      expect(response.headers).not.toHaveProperty('ratelimit')
      expect(response.headers['ratelimit-policy']).toBe('"default";q=2;w=60')
      expect(app.handled[0]?.rateLimit).toMatchObject({ outcome: 'degraded', allowed: true })
    })

    test('refuses them with 503 where it is told to, never with 429', async () => {
      const { app, response } = await ask('deny')
      expect(response.status).toBe(503)
      expect(response.headers['content-type']).toBe('application/problem+json')
      expect(response.headers['retry-after']).toMatch(/^[1-9]\d*$/)
      expect(response.headers).not.toHaveProperty('ratelimit')
      expect(JSON.stringify([response.headers, response.text])).not.toMatch(SECRETS)
      expect(app.handled).toEqual([])
    })
  })

  describe('a store that is down, with a count of this process instead', () => {
    const setUp = (options: Partial<RateLimitOptions> = {}) => {
      const store = new WatchedStore()
      store.before = failures[0]?.[1] as () => unknown
      return appWith(express, create({ store, onStoreError: 'local', logger: quiet, limit: 2, ...options }))
    }

    test('answers a denial as one: 429, with the wait of this process’s window', async () => {
      stopTime()
      const app = setUp()
      const passed = await request(app).get('/').expect(200)
      expect(passed.headers.ratelimit).toBe('"default";r=1;t=60')
      expect(passed.headers).not.toHaveProperty('retry-after')
      await request(app).get('/').expect(200)
      passTime(20_000)
      const denied = await request(app).get('/').expect(429)
      expect(denied.headers).toMatchObject({
        'content-type': 'application/problem+json',
        ratelimit: '"default";r=0;t=40',
        'retry-after': '40',
      })
      expect(denied.body).toMatchObject({ status: 429, 'violated-policies': ['default'] })
      expect(denied.text).not.toMatch(SECRETS)
      expect(app.handled.map(({ rateLimit }) => rateLimit?.outcome)).toEqual(['degraded', 'degraded'])
    })

    test('gives hits back by outcome', async () => {
      const app = setUp({ skipSuccessfulRequests: true })
      for (let i = 0; i < 10; i += 1) await request(app).get('/').expect(200)
    })

    test('lets a handler answer', async () => {
      const handler = jest.fn((_req, res, _next, { outcome, local }) =>
        res.status(429).json({ outcome, local }),
      )
      const app = setUp({ limit: 0, handler })
      await request(app).get('/').expect(429, { outcome: 'degraded', local: true })
    })
  })

  test('hazard 140: 100 requests while the store is down are one line in the log', async () => {
    const store = new WatchedStore()
    store.before = failures[0]?.[1] as () => unknown
    const logger = { error: jest.fn() }
    const app = appWith(express, create({ store, logger }))
    for (let i = 0; i < 100; i += 1) await request(app).get('/').expect(200)
    const lines = logger.error.mock.calls.map(([line]) => String(line))
    expect(lines.filter((line) => line.startsWith('Rate limiter "'))).toHaveLength(1)
    expect(lines.filter((line) => line.startsWith('WatchedStore ')).length).toBeLessThanOrEqual(1)
  })

  describe('a request is counted once', () => {
    test('hazard 128: by a limiter that is mounted twice, also in a router and an application of its own', async () => {
      const limiter = create()
      const inner = express()
      inner.use(limiter, express.Router().use(limiter))
      const app = appWith(express, limiter, limiter, inner)
      await request(app).get('/').expect(200)
      expect(await limiter.peek('127.0.0.1')).toMatchObject({ used: 1 })
      await request(app).get('/').expect(200)
      await request(app).get('/').expect(429)
    })

    test('and again when the connection is used again', async () => {
      const limiter = create({ limit: 10 })
      const get = (end = '') => `GET / HTTP/1.1\r\nHost: x\r\n${end}\r\n`
      await exchange(await serve(appWith(express, limiter)), get() + get() + get('Connection: close\r\n'))
      expect(await limiter.peek('127.0.0.1')).toMatchObject({ used: 3 })
    })

    test.each([
      ['HEAD', 200],
      ['GET', 200],
      ['OPTIONS', 200],
    ])('hazard 125: %s as any other method', async (method, status) => {
      const limiter = create()
      const app = appWith(express, limiter)
      const send = () => exchangeOnce(method)
      const server = await serve(app)
      const exchangeOnce = async (verb: string) =>
        statusesOf(await exchange(server, `${verb} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`))
      expect([await send(), await send(), await send()]).toEqual([[status], [status], [429]])
    })
  })

  test('hazard 125: HEAD of a GET route counts, and a 429 keeps the headers of an earlier cors()', async () => {
    const cors: RequestHandler = (_req, res, next) => {
      res.set('Access-Control-Allow-Origin', '*')
      next()
    }
    const app = express()
    app.use(cors)
    app.get('/x', create(), (_req, res) => {
      res.send('x')
    })
    await request(app).head('/x').expect(200)
    await request(app).head('/x').expect(200)
    const denied = await request(app).get('/x').expect(429)
    expect(denied.headers['access-control-allow-origin']).toBe('*')
  })

  test.each([
    ['allows', 5],
    ['denies', 0],
  ])('hazard 117: a response that was sent meanwhile is left alone when the limiter %s', async (_, limit) => {
    const store = new WatchedStore()
    const { opened, open } = gate()
    store.before = () => opened
    const limiter = create({ store, limit })
    const next = jest.fn()
    let settled: Promise<void> | undefined
    const app = appWith(express, (req, res) => {
      settled = limiter(req, res, next)
      res.status(503).send('timeout')
    })
    await request(app).get('/').expect(503, 'timeout')
    open()
    await expect(settled).resolves.toBeUndefined()
    expect(next).not.toHaveBeenCalled()
  })

  test('hazard 118: a client that leaves at once is counted under its address', async () => {
    const limiter = create({ limit: 10 })
    const server = await serve(appWith(express, limiter))
    for (let i = 0; i < 20; i += 1) {
      const socket = connect(portOf(server), '127.0.0.1')
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      const [req] = await once(server, 'request')
      socket.resetAndDestroy()
      await new Promise((resolve) => req.socket.once('close', resolve))
    }
    expect(await limiter.peek('127.0.0.1')).toMatchObject({ used: 10 })
    await request(server).get('/').expect(429)
  })

  test('is a limiter itself, which counts the same keys', async () => {
    const limiter = create()
    const app = appWith(express, limiter)
    await request(app).get('/').expect(200)
    expect(await limiter.hit('127.0.0.1')).toMatchObject({ allowed: true, used: 2 })
    await request(app).get('/').expect(429)
    await limiter.reset('127.0.0.1')
    await request(app).get('/').expect(200)
  })
})
