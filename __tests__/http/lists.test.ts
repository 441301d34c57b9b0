import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryStore, type RateLimitOptions, rateLimit } from 'express-sql-rate-limit'
import request from 'supertest'
import { appWith, expressVersions, serve } from './serve.js'

const create = (options: Partial<RateLimitOptions> = {}) =>
  rateLimit({
    store: new MemoryStore({ sweepSeconds: false }),
    limit: 1,
    windowSeconds: 60,
    timeoutMs: 60_000,
    logger: { error() {} },
    ...options,
  })

describe.each(expressVersions)('on Express %s', (_, express) => {
  /** An application behind one proxy, so that a test can come from any address. */
  function behindProxy(options: Partial<RateLimitOptions>) {
    const limiter = create(options)
    const app = appWith(express, limiter)
    app.set('trust proxy', 1)
    return { app, limiter, from: (address: string) => request(app).get('/').set('X-Forwarded-For', address) }
  }

  describe('allowList', () => {
    const allowList = ['203.0.113.9', '10.0.0.0/8', '2001:db8:1::/48', '2001:db8::7']

    test.each([
      ['203.0.113.9', 'itself'],
      ['::ffff:203.0.113.9', 'its IPv6 form'],
      ['203.0.113.9:4711', 'with a port'],
      ['10.0.0.0', 'the first of a range'],
      ['10.255.255.255', 'the last of a range'],
      ['2001:db8:1:ffff::1', 'in an IPv6 range'],
      ['2001:DB8:0:0::7', 'another spelling'],
    ])('lets %s (%s) through, uncounted', async (address) => {
      const { app, limiter, from } = behindProxy({ allowList, limit: 0 })
      for (let i = 0; i < 3; i += 1) {
        const { headers } = await from(address).expect(200)
        expect(headers).not.toHaveProperty('ratelimit-policy')
        expect(headers).not.toHaveProperty('ratelimit')
      }
      expect(app.handled[0]?.rateLimit).toBeUndefined()
      expect(await limiter.peek('203.0.113.9')).toMatchObject({ used: 0 })
    })

    test.each(['203.0.113.10', '11.0.0.0', '9.255.255.255', '2001:db8:2::1', '2001:db8::8', 'nonsense'])(
      'counts %s as any other',
      async (address) => {
        const { from } = behindProxy({ allowList })
        await from(address).expect(200)
        await from(address).expect(429)
      },
    )

    test('is not asked about what the client writes without a trusted proxy', async () => {
      const app = appWith(express, create({ allowList: ['10.0.0.0/8'], limit: 0 }))
      await request(app).get('/').set('X-Forwarded-For', '10.1.2.3').expect(429)
    })

    test('spares the key, the limit and the skip function', async () => {
      const asked = jest.fn(() => {
        throw new Error('must not be asked')
      })
      const { from } = behindProxy({ allowList, keyFn: asked, limit: asked, skip: asked, cost: asked })
      await from('10.1.2.3').expect(200)
      expect(asked).not.toHaveBeenCalled()
    })
  })

  describe('denyList', () => {
    const denyList = ['198.51.100.0/24', '2001:db8:bad::/48', '192.0.2.1']

    test.each(['198.51.100.77', '::ffff:198.51.100.77', '2001:db8:bad:1::5', '192.0.2.1'])(
      'refuses %s with a problem document, uncounted',
      async (address) => {
        const { app, limiter, from } = behindProxy({ denyList, limit: 5 })
        const response = await from(address).expect(403)
        expect(response.headers['content-type']).toBe('application/problem+json')
        expect(response.headers['cache-control']).toBe('no-store')
        expect(response.headers).not.toHaveProperty('retry-after')
        expect(JSON.parse(response.text)).toMatchObject({ status: 403, detail: expect.any(String) })
        expect(response.text).not.toContain(address)
        expect([app.handled, app.errors]).toEqual([[], []])
        expect(await limiter.peek('192.0.2.1')).toMatchObject({ used: 0 })
      },
    )

    test.each(['198.51.101.1', '2001:db8:bae::1', '192.0.2.2'])('does not know %s', async (address) => {
      const { from } = behindProxy({ denyList })
      await from(address).expect(200)
    })

    test('gives way to an allowList: one address out of a refused network', async () => {
      const { from } = behindProxy({ denyList, allowList: ['198.51.100.9'] })
      await from('198.51.100.9').expect(200)
      await from('198.51.100.8').expect(403)
    })

    test('refuses before skip is asked', async () => {
      const { from } = behindProxy({ denyList, skip: () => true })
      await from('192.0.2.1').expect(403)
    })

    test('sends a HEAD request no body', async () => {
      const { app } = behindProxy({ denyList })
      const response = await request(app).head('/').set('X-Forwarded-For', '192.0.2.1').expect(403)
      expect(response.text).toBeUndefined()
    })
  })

  describe('hazard 111: on a Unix socket, where nobody has an address', () => {
    let folder: string

    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'rate-limit-'))
    })
    afterEach(() => rm(folder, { recursive: true }))

    async function open(options: Partial<RateLimitOptions>) {
      const warn = jest.fn()
      const limiter = create({ ...options, logger: { error: warn } })
      const app = appWith(express, limiter)
      const path = join(folder, 'socket')
      await serve(app, { path })
      const get = async (headers = {}): Promise<number | undefined> => {
        const sent = httpRequest({ socketPath: path, path: '/', headers, agent: false }).end()
        const [response] = (await once(sent, 'response')) as [IncomingMessage]
        response.resume()
        await once(response, 'close')
        return response.statusCode
      }
      const warnings = () => warn.mock.calls.filter(([text]) => String(text).startsWith('WRN_NO_ADDRESS'))
      return { app, limiter, get, warnings }
    }

    test('all requests share one counter by default, with one warning', async () => {
      const { get, warnings } = await open({ limit: 2 })
      expect([await get(), await get(), await get(), await get()]).toEqual([200, 200, 429, 429])
      expect(warnings()).toHaveLength(1)
    })

    test('missingKey "deny" refuses them with 403, with one warning', async () => {
      const { app, get, warnings } = await open({ missingKey: 'deny' })
      expect([await get(), await get()]).toEqual([403, 403])
      expect(app.handled).toEqual([])
      expect(warnings()).toHaveLength(1)
    })

    test('what another key is made of is counted by it, without a warning', async () => {
      const { get, warnings } = await open({ missingKey: 'deny', keyFn: (req) => String(req.headers.user) })
      expect([await get({ user: 'a' }), await get({ user: 'b' }), await get({ user: 'a' })]).toEqual([
        200, 200, 429,
      ])
      expect(warnings()).toEqual([])
    })

    test('a proxy that is trusted gives them addresses', async () => {
      const { app, get, warnings } = await open({ missingKey: 'deny' })
      app.set('trust proxy', 1)
      const from = (address: string) => get({ 'x-forwarded-for': address })
      expect([await from('192.0.2.1'), await from('192.0.2.2'), await from('192.0.2.1')]).toEqual([
        200, 200, 429,
      ])
      expect(warnings()).toEqual([])
    })

    test('no list of addresses holds them, not even one of all addresses', async () => {
      const everybody = ['0.0.0.0/0', '::/0']
      const { get } = await open({ allowList: everybody, denyList: everybody })
      expect([await get(), await get()]).toEqual([200, 429])
    })
  })
})
