import { MemoryStore, type RateLimitOptions, rateLimit } from 'express-sql-rate-limit'
import request from 'supertest'
import { passTime, stopTime } from '../limiter/moving-time.js'
import { appWith, exchange, expressVersions, serve, statusesOf } from './serve.js'

const create = (options: Partial<RateLimitOptions> = {}) =>
  rateLimit({
    store: new MemoryStore({ sweepSeconds: false }),
    limit: 2,
    windowSeconds: 60,
    timeoutMs: 60_000,
    onStoreError: 'deny',
    logger: { error() {} },
    ...options,
  })

/** What users of express-rate-limit know, by the options that have its names. */
describe.each(expressVersions)('as express-rate-limit, on Express %s', (_, express) => {
  const appOf = (options: Partial<RateLimitOptions> = {}) => appWith(express, create(options))
  const denied = (options: Partial<RateLimitOptions> = {}) =>
    request(appOf({ limit: 0, ...options })).get('/')

  beforeEach(stopTime)

  test('lets requests through up to the limit, then not, and again after the window', async () => {
    const app = appOf({ limit: 3 })
    const statuses: number[] = []
    for (let i = 0; i < 5; i += 1) statuses.push((await request(app).get('/')).status)
    expect(statuses).toEqual([200, 200, 200, 429, 429])
    passTime(60_000)
    await request(app).get('/').expect(200)
  })

  test('requestPropertyName puts the decision there, and nowhere else', async () => {
    const app = appOf({ requestPropertyName: 'quota' })
    await request(app).get('/').expect(200)
    expect(app.handled[0]).toMatchObject({ quota: { limit: 2, used: 1, remaining: 1 } })
    expect(app.handled[0]).not.toHaveProperty('rateLimit')
  })

  describe('message', () => {
    test('as a text is the body', async () => {
      const response = await denied({ message: 'Slow down.' }).expect(429, 'Slow down.')
      expect(response.headers['content-type']).toMatch(/^text\/html/)
      expect(response.headers['cache-control']).toBe('no-store')
    })

    test('as an object is sent as JSON', async () => {
      const response = await denied({ message: { error: 'slow down' } }).expect(429, { error: 'slow down' })
      expect(response.headers['content-type']).toMatch(/^application\/json/)
    })

    test.each<[string, unknown]>([
      ['sync', (req: { url: string }) => `Slow down at ${req.url}`],
      ['async', async (req: { url: string }) => `Slow down at ${req.url}`],
    ])('as a function gives the body of this request (%s)', async (_, message) => {
      await denied({ message }).expect(429, 'Slow down at /')
    })

    test('as a function that throws is an error for the application', async () => {
      const failure = new Error('no template')
      const app = appOf({ limit: 0, message: () => Promise.reject(failure) })
      await request(app).get('/').expect(500)
      expect(app.errors).toEqual([failure])
    })
  })

  test.each([400, 403, 420, 503, 599])(
    'statusCode %i is the status, of the problem document too',
    async (statusCode) => {
      const response = await denied({ statusCode }).expect(statusCode)
      expect(JSON.parse(response.text)).toMatchObject({ status: statusCode })
      await denied({ statusCode, message: 'no' }).expect(statusCode, 'no')
    },
  )

  test('handler answers in its own way, with the request, the response, next and the decision', async () => {
    const app = appOf({
      limit: 0,
      handler: (req, res, next, decision) => {
        res.status(418).json({ url: req.url, next: typeof next, outcome: decision.outcome })
      },
    })
    await request(app).get('/tea').expect(418, { url: '/tea', next: 'function', outcome: 'denied' })
  })

  test('skip lets through uncounted what it says true to', async () => {
    const app = appOf({ limit: 1, skip: (req) => req.path === '/health' })
    for (let i = 0; i < 3; i += 1) await request(app).get('/health').expect(200)
    await request(app).get('/').expect(200)
    await request(app).get('/').expect(429)
    await request(app).get('/health').expect(200)
  })

  test.each<[string, RateLimitOptions['keyFn']]>([
    ['sync', (req) => String(req.query.key)],
    ['async', async (req) => String(req.query.key)],
  ])('keyFn counts each key apart (%s)', async (_, keyFn) => {
    const app = appOf({ limit: 1, keyFn })
    for (const key of ['1', '2']) await request(app).get(`/?key=${key}`).expect(200)
    for (const key of ['1', '2']) await request(app).get(`/?key=${key}`).expect(429)
  })

  describe('headers, literally:', () => {
    const fieldsOf = (headers: Record<string, unknown>) =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => /ratelimit|^retry-after$/.test(name)))
    const legacy = (remaining: number, reset = 1_767_614_460) => ({
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': String(remaining),
      'x-ratelimit-reset': String(reset),
    })
    const tables: [string, Partial<RateLimitOptions>, object, object][] = [
      [
        'draft-6',
        { standardHeaders: 'draft-6' },
        {
          'ratelimit-policy': '2;w=60',
          'ratelimit-limit': '2',
          'ratelimit-remaining': '1',
          'ratelimit-reset': '60',
        },
        {
          'ratelimit-policy': '2;w=60',
          'ratelimit-limit': '2',
          'ratelimit-remaining': '0',
          'ratelimit-reset': '60',
        },
      ],
      [
        'draft-7',
        { standardHeaders: 'draft-7' },
        { 'ratelimit-policy': '2;w=60', ratelimit: 'limit=2, remaining=1, reset=60' },
        { 'ratelimit-policy': '2;w=60', ratelimit: 'limit=2, remaining=0, reset=60' },
      ],
      ...(['draft-8', 'draft-11'] as const).map((standardHeaders): (typeof tables)[number] => [
        standardHeaders,
        { standardHeaders },
        { 'ratelimit-policy': '"default";q=2;w=60', ratelimit: '"default";r=1;t=60' },
        { 'ratelimit-policy': '"default";q=2;w=60', ratelimit: '"default";r=0;t=60' },
      ]),
      ['none', { standardHeaders: false }, {}, {}],
      ['legacy only', { standardHeaders: false, legacyHeaders: true }, legacy(1), legacy(0)],
      [
        'both',
        { standardHeaders: 'draft-7', legacyHeaders: true },
        { 'ratelimit-policy': '2;w=60', ratelimit: 'limit=2, remaining=1, reset=60', ...legacy(1) },
        { 'ratelimit-policy': '2;w=60', ratelimit: 'limit=2, remaining=0, reset=60', ...legacy(0) },
      ],
    ]

    test.each(tables)('%s', async (_, options, allowed, refused) => {
      const app = appOf(options)
      expect(fieldsOf((await request(app).get('/').expect(200)).headers)).toEqual(allowed)
      await request(app).get('/').expect(200)
      const { headers } = await request(app).get('/').expect(429)
      expect(fieldsOf(headers)).toEqual({ ...refused, 'retry-after': '60' })
    })
  })

  test('hazard 124: a client that obeys Retry-After a hundred times is admitted a hundred times', async () => {
    const server = await serve(appOf({ limit: 1, windowSeconds: 7.3 }))
    await request(server).get('/').expect(200)
    for (let i = 0; i < 100; i += 1) {
      passTime((i * 311) % 7000)
      const { headers } = await request(server).get('/').expect(429)
      passTime(Number(headers['retry-after']) * 1000)
      await request(server).get('/').expect(200)
    }
  })

  test('hazard 131: of twenty requests pipelined on one socket five pass, in order', async () => {
    const get = (end = '') => `GET / HTTP/1.1\r\nHost: x\r\n${end}\r\n`
    const answer = await exchange(
      await serve(appOf({ limit: 5 })),
      get().repeat(19) + get('Connection: close\r\n'),
    )
    expect(statusesOf(answer)).toEqual([...Array(5).fill(200), ...Array(15).fill(429)])
  })

  test.each([
    ['2001:db8:1:2300', 10],
    ['2001:db8:1:2400', 10],
  ])('hazard 116: of 1,000 random addresses of one /56 (%s) ten pass', async (prefix, count) => {
    const app = appOf({ limit: 10 })
    app.set('trust proxy', 1)
    const group = () => Math.floor(Math.random() * 0x10000).toString(16)
    const get = (end = '') => {
      const subnet = (Number.parseInt(prefix.slice(-4), 16) + Math.floor(Math.random() * 256)).toString(16)
      const address = `${prefix.slice(0, -4)}${subnet}:${group()}:${group()}:${group()}:${group()}`
      return `GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${address}\r\n${end}\r\n`
    }
    const bytes = Array.from({ length: 999 }, () => get()).join('') + get('Connection: close\r\n')
    const statuses = statusesOf(await exchange(await serve(app), bytes))
    expect(statuses).toHaveLength(1000)
    expect(statuses.filter((status) => status === 200)).toHaveLength(count)
  })

  test('hazard 146: keys of parts never collide: a:b and c, a and b:c, and the text of both', async () => {
    const keys = [['a:b', 'c'], ['a', 'b:c'], ['a', 'b', 'c'], 'a:b:c', '["a:b","c"]']
    let key: string | string[] = ''
    const app = appOf({ limit: 1, keyFn: () => key })
    for (key of keys) await request(app).get('/').expect(200)
    for (key of keys) await request(app).get('/').expect(429)
  })

  describe('hazard 129: two limiters on one store', () => {
    test('with the same default key and name are refused when the second is created', () => {
      const store = new MemoryStore({ sweepSeconds: false })
      create({ store })
      expect(() => create({ store, limit: 100, windowSeconds: 3600 })).toThrow(TypeError)
    })

    test('with a name each are both exact', async () => {
      const store = new MemoryStore({ sweepSeconds: false })
      const app = appWith(
        express,
        create({ store, name: 'short', limit: 3, windowSeconds: 20 }),
        create({ store, name: 'long', limit: 5, windowSeconds: 60 }),
      )
      const admitted = async () => {
        let count = 0
        for (let i = 0; i < 5; i += 1) if ((await request(app).get('/')).status === 200) count += 1
        return count
      }
      expect(await admitted()).toBe(3)
      passTime(20_000)
      expect(await admitted()).toBe(2)
      passTime(40_000)
      expect(await admitted()).toBeGreaterThan(0)
    })
  })
})
