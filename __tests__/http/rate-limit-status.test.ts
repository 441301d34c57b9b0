import {
  Limiter,
  MemoryStore,
  type RateLimitStatusOptions,
  rateLimit,
  rateLimitStatus,
} from 'express-sql-rate-limit'
import request from 'supertest'
import { passTime, stopTime } from '../limiter/moving-time.js'
import { failures, gate, SECRETS, WatchedStore } from '../limiter/watched-store.js'
import { appWith, expressVersions, serve } from './serve.js'

const quiet = { error() {} }
const refuse = failures[0]?.[1] as () => unknown

describe.each(expressVersions)('on Express %s', (_, express) => {
  function setUp() {
    const store = new WatchedStore(new MemoryStore({ sweepSeconds: false }))
    const ping = rateLimit({ store, name: 'ping', limit: 3, windowSeconds: 60, timeoutMs: 60_000 })
    const login = new Limiter({
      store,
      name: 'login',
      limit: 5,
      windowSeconds: 900,
      algorithm: 'fixed-window',
      timeoutMs: 60_000,
    })
    const app = appWith(express)
    const status = express()
    status.use('/status', rateLimitStatus({ limiters: [ping, login], authorize: 'none' }))
    status.use(app)
    return { store, ping, login, app, status }
  }

  test('tells of each limiter, in order, how full it is for a key', async () => {
    stopTime()
    const { ping, login, status } = setUp()
    await ping.hit('anna')
    passTime(10_500)
    await ping.hit('anna')
    for (let i = 0; i < 7; i += 1) await login.hit('anna')
    await login.hit('other') // brings along what was refused from memory
    const response = await request(status).get('/status?key=anna').expect(200)
    expect(response.body).toEqual({
      limiters: [
        { key: 'anna', policy: 'ping', count: 2, limit: 3, remaining: 1, resetSeconds: 50 },
        { key: 'anna', policy: 'login', count: 7, limit: 5, remaining: 0, resetSeconds: 890 },
      ],
    })
    expect(response.headers['content-type']).toMatch(/^application\/json\b/)
    expect(response.headers['cache-control']).toBe('no-store')
  })

  test('counts nothing, and shows a key that nobody used as empty', async () => {
    const { store, status } = setUp()
    for (let i = 0; i < 5; i += 1) {
      const { body } = await request(status).get('/status?key=nobody').expect(200)
      expect(body.limiters[0]).toEqual({
        ...{ key: 'nobody', policy: 'ping', count: 0, limit: 3, remaining: 3, resetSeconds: 0 },
      })
    }
    expect(store.batches).toEqual([])
  })

  test('finds a key of several parts by the parameter repeated', async () => {
    const { ping, status } = setUp()
    await ping.hit(['a:b', 'c'])
    const { body } = await request(status).get('/status?key=a:b&key=c').expect(200)
    expect(body.limiters[0]).toMatchObject({ key: '["a:b","c"]', count: 1 })
    const other = await request(status).get('/status?key=a&key=b:c').expect(200)
    expect(other.body.limiters[0]).toMatchObject({ count: 0 })
  })

  test.each(['a b', '😀', 'a\0b', '<script>', 'x'.repeat(4000), '__proto__', "' OR 1=1 --"])(
    'finds the key %.20j as it was hit',
    async (key) => {
      const { ping, status } = setUp()
      await ping.hit(key)
      const { body } = await request(status)
        .get(`/status?key=${encodeURIComponent(key)}`)
        .expect(200)
      expect(body.limiters[0]).toMatchObject({ key, count: 1 })
    },
  )

  test.each(['/status', '/status?key=', '/status?KEY=anna', '/status?key[a]=1'])(
    '%s is a 400 problem, as it names no key',
    async (path) => {
      const { status } = setUp()
      const response = await request(status).get(path).expect(400)
      expect(response.headers['content-type']).toBe('application/problem+json')
      expect(response.body).toEqual({
        type: 'about:blank',
        title: 'Bad Request',
        status: 400,
        detail: expect.stringContaining('key'),
      })
    },
  )

  test('hazard 125: answers HEAD as GET', async () => {
    const { status } = setUp()
    const head = await request(status).head('/status?key=anna').expect(200)
    const get = await request(status).get('/status?key=anna').expect(200)
    expect(head.headers['content-length']).toBe(get.headers['content-length'])
  })

  test.each([
    ['POST', '/status?key=anna'],
    ['DELETE', '/status?key=anna'],
    ['GET', '/status/more?key=anna'],
    ['GET', '/other?key=anna'],
  ])('leaves %s %s to the application', async (method, path) => {
    const { app, status } = setUp()
    const response = await request(status)[method.toLowerCase() as 'get'](path)
    expect(response.body).toEqual({ ok: true })
    expect(app.handled).toHaveLength(1)
  })

  test('is a handler for a route of its own, too', async () => {
    const { ping } = setUp()
    const app = express()
    app.get('/limits', rateLimitStatus({ limiters: [ping], authorize: 'none' }))
    const { body } = await request(app).get('/limits?key=anna').expect(200)
    expect(body.limiters).toHaveLength(1)
  })

  test.each(failures)(
    'is a 503 problem when the store %s, and shows nothing of it',
    async (_, fail) => {
      const store = new WatchedStore()
      store.before = fail
      for (const onStoreError of ['allow', 'deny'] as const) {
        const limiter = new Limiter({
          ...{ store, limit: 1, windowSeconds: 1, timeoutMs: 20, onStoreError, logger: quiet },
        })
        const app = appWith(express, rateLimitStatus({ limiters: [limiter], authorize: 'none' }))
        const response = await request(await serve(app))
          .get('/?key=anna')
          .expect(503)
        expect(response.headers['content-type']).toBe('application/problem+json')
        expect(response.body).toMatchObject({ status: 503 })
        expect(JSON.stringify([response.headers, response.text])).not.toMatch(SECRETS)
        expect(app.errors).toEqual([])
      }
    },
    5000,
  )

  test('tells how the stores are, each once, if that is wanted', async () => {
    const { store, ping, login } = setUp()
    const other = new Limiter({ store: new WatchedStore(), limit: 1, windowSeconds: 1 })
    const limiters = [ping, login, other]
    const app = appWith(express, rateLimitStatus({ limiters, authorize: 'none', storeHealth: true }))
    const well = { state: 'closed', since: expect.any(String), lastError: null, pending: 0 }
    const { body } = await request(app).get('/?key=anna').expect(200)
    expect(body.stores).toEqual([well, well])
    store.before = refuse
    await ping.hit('anna')
    const failing = await request(app).get('/?key=anna').expect(503)
    expect(failing.body.stores).toEqual([{ ...well, lastError: 'ERR_STORE_CONNECTION' }, well])
    expect(failing.body).toMatchObject({ status: 503, title: expect.any(String) })
    expect(failing.text).not.toMatch(SECRETS)
  })

  test('hazard 117: leaves a response alone that was sent meanwhile', async () => {
    const { store, ping } = setUp()
    const { opened, open } = gate()
    store.before = () => opened
    const status = rateLimitStatus({ limiters: [ping], authorize: 'none' })
    const next = jest.fn()
    let settled: Promise<void> | undefined
    const app = appWith(express, (req, res) => {
      settled = status(req, res, next)
      res.status(503).send('timeout')
    })
    await request(app).get('/?key=anna').expect(503, 'timeout')
    open()
    await expect(settled).resolves.toBeUndefined()
    expect(next).not.toHaveBeenCalled()
  })

  describe('authorize', () => {
    const token = 'letmein'
    const mount = (authorize: (req: { get(name: string): string | undefined }) => unknown) => {
      const { store, ping } = setUp()
      const peek = jest.spyOn(store, 'peek')
      const options = { limiters: [ping], authorize } as unknown as RateLimitStatusOptions
      return { peek, app: appWith(express, rateLimitStatus(options)) }
    }
    const isOperator = (req: { get(name: string): string | undefined }) => req.get('X-Token') === token

    test.each([
      ['a function', isOperator],
      ['an async function', async (req: Parameters<typeof isOperator>[0]) => isOperator(req)],
    ])('%s is asked about each request', async (_, authorize) => {
      const { app, peek } = mount(authorize)
      const refused = await request(app).get('/?key=anna').expect(403)
      expect(refused.headers['content-type']).toBe('application/problem+json')
      expect(refused.headers['cache-control']).toBe('no-store')
      expect(refused.body).toEqual({
        ...{ type: 'about:blank', title: 'Forbidden', status: 403, detail: 'This is for operators.' },
      })
      expect(peek).not.toHaveBeenCalled()
      await request(app).get('/?key=anna').set('X-Token', token).expect(200)
    })

    test('is asked before anything else, so that a stranger does not learn what is wrong with the request', async () => {
      const { app } = mount(isOperator)
      await request(app).get('/').expect(403)
      await request(app).get('/').set('X-Token', token).expect(400)
    })

    test.each<[string, () => unknown]>([
      ['throws', refuse],
      ['rejects', async () => refuse()],
      ['returns nothing', () => {}],
      ['returns a text', () => 'yes'],
      ['returns null for no such user', async () => null],
      ['returns a record', async () => ({ id: 1 })],
    ])('what %s lets nobody in, and is not shown', async (_, authorize) => {
      const { app } = mount(authorize)
      const refused = await request(app).get('/?key=anna').expect(403)
      expect(JSON.stringify([refused.headers, refused.text])).not.toMatch(SECRETS)
      expect(app.errors).toEqual([])
    })

    test('hazard 117: leaves a response alone that was sent while it was asked', async () => {
      const { ping } = setUp()
      const { opened, open } = gate()
      const authorize = () => opened.then(() => false)
      const status = rateLimitStatus({ limiters: [ping], authorize })
      let settled: Promise<void> | undefined
      const app = appWith(express, (req, res) => {
        settled = status(req, res, jest.fn())
        res.status(503).send('timeout')
      })
      await request(app).get('/?key=anna').expect(503, 'timeout')
      open()
      await expect(settled).resolves.toBeUndefined()
    })
  })

  test('an empty list of limiters is an empty list', async () => {
    const app = appWith(express, rateLimitStatus({ limiters: [], authorize: 'none' }))
    await request(app).get('/?key=anna').expect(200, { limiters: [] })
  })
})

describe('a wrong option throws at construction', () => {
  test.each([undefined, null, 'ping', 5, {}, [undefined], [null], [{}], ['ping'], [() => {}]])(
    '`limiters`: %p',
    (limiters) => {
      const construct = () =>
        rateLimitStatus({ limiters, authorize: 'none' } as unknown as RateLimitStatusOptions)
      const type = limiters === null ? 'null' : typeof limiters
      expect(construct).toThrow(TypeError)
      expect(construct).toThrow(
        new RegExp(`^Expected \`limiters\` to be an array of limiters, got .+ \\(${type}\\)$`),
      )
    },
  )

  test('a limiter of which a limit depends on the request', () => {
    const store = new MemoryStore({ sweepSeconds: false })
    const limits = [
      { name: 'all', limit: 3, windowSeconds: 60 },
      { name: 'plan', limit: () => 5, windowSeconds: 60 },
    ]
    for (const limiter of [
      rateLimit({ store, limits }),
      rateLimit({ store, name: 'one', limit: () => 5, windowSeconds: 60 }),
    ]) {
      const construct = () => rateLimitStatus({ limiters: [limiter], authorize: 'none' })
      expect(construct).toThrow(/^Expected `limiters` to be .+ depends on the request$/)
    }
  })

  test.each([undefined, null, true, false, 'all', '', {}])('`authorize`: %p', (authorize) => {
    const construct = () => rateLimitStatus({ limiters: [], authorize } as unknown as RateLimitStatusOptions)
    expect(construct).toThrow(TypeError)
    expect(construct).toThrow(
      /^Expected `authorize` to be a function of the request, or 'none' where only operators can reach the route, got /,
    )
  })

  test('an unknown option', () => {
    const construct = () =>
      rateLimitStatus({ limiters: [], authorize: 'none', limiter: 1 } as RateLimitStatusOptions)
    expect(construct).toThrow(TypeError)
    expect(construct).toThrow(/^Unknown option `limiter` of .*\blimiters\b/)
  })

  test.each([undefined, null, 5])('no options at all: %p', (options) => {
    expect(() => rateLimitStatus(options as unknown as RateLimitStatusOptions)).toThrow(TypeError)
  })
})
