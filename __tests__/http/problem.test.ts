import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { MemoryStore, type RateLimitOptions, rateLimit } from 'express-sql-rate-limit'
import request from 'supertest'
import { stopTime } from '../limiter/moving-time.js'
import { failures, SECRETS, WatchedStore } from '../limiter/watched-store.js'
import { appWith, exchange, expressVersions, portOf, serve } from './serve.js'

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
      const denied = await request(app).get('/').set('Accept', 'text/html').expect(429)
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
