import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { type DeniedDecision, MemoryStore, type RateLimitOptions, rateLimit } from 'express-sql-rate-limit'
import request from 'supertest'
import { denialProblem } from '../../lib/http/problem.js'
import { stopTime } from '../limiter/moving-time.js'
import { failures, SECRETS, WatchedStore } from '../limiter/watched-store.js'
import { appWith, exchange, expressVersions, portOf, serve } from './serve.js'
import { decide, type Limit, policyOf } from './telling.js'

describe('the problem of a denial', () => {
  const ping = policyOf({ name: 'ping', limit: 3, windowSeconds: 60 })
  const day = policyOf({ name: 'day', limit: 1, windowSeconds: 86_400 })
  const problemOf = (...limits: Limit[]) => denialProblem(decide(...limits) as DeniedDecision)
  const never = Number.POSITIVE_INFINITY

  test.each<[string, Limit[], string, string[]]>([
    [
      'one limit',
      [[ping, 3, 42, 42]],
      'Limit "ping" allows 3 requests per 60 seconds. Retry in 42 seconds.',
      ['ping'],
    ],
    [
      'one of several limits',
      [
        [ping, 3, 42, 42],
        [day, 0, 0],
      ],
      'Limit "ping" allows 3 requests per 60 seconds. Retry in 42 seconds.',
      ['ping'],
    ],
    [
      'several limits, with one wait, the longest',
      [
        [ping, 3, 42, 42],
        [day, 1, 7000, 7000],
      ],
      'Limit "ping" allows 3 requests per 60 seconds. Limit "day" allows 1 request per 86400 seconds. Retry in 7000 seconds.',
      ['ping', 'day'],
    ],
    [
      'a cost above the limit, which no waiting helps',
      [[ping, 0, 0, never]],
      'Limit "ping" allows 3 requests per 60 seconds. This request alone costs more than that.',
      ['ping'],
    ],
    [
      'a cost above one of several limits',
      [
        [ping, 3, 42, 42],
        [day, 0, 0, never],
      ],
      'Limit "ping" allows 3 requests per 60 seconds. Limit "day" allows 1 request per 86400 seconds. This request alone costs more than that.',
      ['ping', 'day'],
    ],
    [
      'a limit of nothing',
      [[policyOf({ name: 'shut', limit: 0 }), 0, 0, never]],
      'Limit "shut" allows 0 requests per 60 seconds.',
      ['shut'],
    ],
  ])('tells of %s, and never of a key', (_, limits, detail, names) => {
    const problem = problemOf(...limits)
    expect(problem).toMatchObject({ detail, 'violated-policies': names, status: 429 })
    expect(JSON.stringify(problem)).not.toContain('secret-key')
  })

  test('has another type and status on demand, and is otherwise the same', () => {
    const decision = decide([ping, 3, 42, 42]) as DeniedDecision
    const other = denialProblem(decision, 'https://example.com/busy', 503)
    expect({ ...other }).toEqual({
      ...denialProblem(decision),
      type: 'https://example.com/busy',
      status: 503,
    })
  })
})

const refuse = failures[0]?.[1] as () => unknown

describe.each(expressVersions)('on Express %s', (_, express) => {
  function limited(options: Partial<RateLimitOptions> = {}) {
    const store = new WatchedStore(new MemoryStore({ sweepSeconds: false }))
    const logger = { error: jest.fn() }
    const limiter = rateLimit({ store, name: 'login', limit: 1, windowSeconds: 60, logger, ...options })
    return { store, app: appWith(express, limiter) }
  }

  describe('a denial', () => {
    beforeEach(stopTime)

    test('is a 429 with a problem document, to the letter', async () => {
      const { app } = limited()
      await request(app).get('/')
      const denied = await request(app).get('/').expect(429)
      expect(denied.headers).toMatchObject({
        'content-type': 'application/problem+json',
        'content-language': 'en',
        'content-length': String(Buffer.byteLength(denied.text)),
        'cache-control': 'no-store',
        'retry-after': '60',
        'ratelimit-policy': '"login";q=1;w=60',
        ratelimit: '"login";r=0;t=60',
      })
      expect(JSON.parse(denied.text)).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
        title: 'Request cannot be satisfied as assigned quota has been exceeded',
        status: 429,
        detail: 'Limit "login" allows 1 request per 60 seconds. Retry in 60 seconds.',
        'violated-policies': ['login'],
      })
    })

    test('overrides what an earlier middleware said about caching and type', async () => {
      const { store } = limited()
      const limiter = rateLimit({ store, name: 'other', limit: 0, windowSeconds: 1 })
      const app = appWith(
        express,
        (_req, res, next) => {
          res.set({ 'Cache-Control': 'public, max-age=600', 'Content-Type': 'text/html' }).status(201)
          next()
        },
        limiter,
      )
      const denied = await request(app).get('/').expect(429)
      expect(denied.headers['cache-control']).toBe('no-store')
      expect(denied.headers['content-type']).toBe('application/problem+json')
    })

    test('answers HEAD with the same headers and not one byte of body', async () => {
      const { app } = limited()
      const server = await serve(app)
      const send = (method: string) =>
        exchange(server, `${method} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
      await send('GET')
      const [head = '', body] = (await send('HEAD')).split('\r\n\r\n')
      expect(body).toBe('')
      expect(head).toMatch(/^HTTP\/1\.1 429 /)
      const [getHead = '', getBody = ''] = (await send('GET')).split('\r\n\r\n')
      const fields = (text: string) => text.split('\r\n').filter((line) => !/^(Date|Connection)/.test(line))
      expect(fields(head)).toEqual(fields(getHead))
      expect(head).toContain(`Content-Length: ${Buffer.byteLength(getBody)}`)
    })

    test('is the same for a client that asks for anything else', async () => {
      const { app } = limited({ limit: 0 })
      const denied = await request(app).get('/').set('Accept', 'image/png').expect(429)
      expect(denied.headers['content-type']).toBe('application/problem+json')
    })

    test.each([
      [
        'one second to wait',
        { windowSeconds: 1 },
        /allows 1 request per 1 second\. Retry in 1 second\.$/,
        '1',
      ],
      ['a window of milliseconds', { windowSeconds: 0.5 }, /per 0\.5 seconds\. Retry in 1 second\.$/, '1'],
      [
        'a limit of nothing, which waiting does not help',
        { limit: 0 },
        /allows 0 requests per 60 seconds\.$/,
        undefined,
      ],
    ])('with %s', async (_, options, detail, retryAfter) => {
      const { app } = limited(options)
      await request(app).get('/')
      const denied = await request(app).get('/').expect(429)
      expect(denied.body.detail).toMatch(detail)
      expect(denied.headers['retry-after']).toBe(retryAfter)
    })
  })

  describe('a store that fails, where onStoreError is deny', () => {
    test('is a 503 with a problem document, to the letter', async () => {
      const { store, app } = limited({ onStoreError: 'deny' })
      store.before = refuse
      const refused = await request(app).get('/').expect(503)
      expect(refused.headers).toMatchObject({
        'content-type': 'application/problem+json',
        'cache-control': 'no-store',
        'retry-after': '5',
        'ratelimit-policy': '"login";q=1;w=60',
      })
      expect(refused.headers).not.toHaveProperty('ratelimit')
      expect(JSON.parse(refused.text)).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        title: 'Request cannot be satisfied due to temporary server capacity constraints',
        status: 503,
        detail: 'The rate limiter cannot decide at the moment.',
      })
    })

    test.each(['development', 'production'])('hazard 156: shows nothing of the error in %s', async (env) => {
      for (const [, fail] of failures) {
        const { store, app } = limited({ onStoreError: 'deny', timeoutMs: 20 })
        app.set('env', env)
        store.before = fail
        const refused = await request(app).get('/').expect(503)
        expect(JSON.stringify([refused.headers, refused.text])).not.toMatch(SECRETS)
      }
    })
  })

  test('hazard 132: a denial reaches a client that is still sending 30 MB, and the connection lives on', async () => {
    const { app } = limited({ limit: 0 })
    const server = await serve(app)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const send = async (method: string, body = '') => {
      const req = httpRequest({ port: portOf(server), host: '127.0.0.1', agent, method }).end(body)
      const [response] = (await once(req, 'response')) as [IncomingMessage]
      const from = req.socket?.localPort
      let text = ''
      for await (const chunk of response) text += chunk
      return { status: response.statusCode, problem: JSON.parse(text), from }
    }
    try {
      const upload = await send('POST', 'x'.repeat(30_000_000))
      expect(upload).toMatchObject({ status: 429, problem: { status: 429 } })
      expect(await send('GET')).toMatchObject({ status: 429, from: upload.from })
    } finally {
      agent.destroy()
    }
  })
})
