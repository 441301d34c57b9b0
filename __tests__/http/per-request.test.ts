import { once } from 'node:events'
import { connect } from 'node:net'
import type { Request, Response } from 'express'
import { MemoryStore, type RateLimitOptions, rateLimit } from 'express-sql-rate-limit'
import request from 'supertest'
import { stopTime } from '../limiter/moving-time.js'
import { gate } from '../limiter/watched-store.js'
import { appWith, expressVersions, portOf, serve } from './serve.js'

const create = (options: Partial<RateLimitOptions> = {}) =>
  rateLimit({
    store: new MemoryStore({ sweepSeconds: false }),
    limit: 2,
    windowSeconds: 60,
    timeoutMs: 60_000,
    // A failure must not look like an admission.
    onStoreError: 'deny',
    logger: { error() {} },
    ...options,
  })

/** A request for something to depend on. */
const get = (app: Parameters<typeof request>[0], headers: Record<string, string> = {}) =>
  request(app).get('/').set(headers)

/** The same function of the request, sync and async. */
const both = <T>(of: (req: Request, res: Response) => T): [string, (req: Request, res: Response) => T][] => [
  ['sync', of],
  ['async', (async (req, res) => of(req, res)) as typeof of],
]

describe.each(expressVersions)('on Express %s', (_, express) => {
  describe.each(both((req) => (req.get('x-plan') === 'pro' ? 3 : 1)))('a limit by plan (%s)', (_, limit) => {
    test('is the limit of the request, and its policy in the headers', async () => {
      stopTime()
      const app = appWith(express, create({ limit, keyFn: (req) => req.get('x-user') ?? '' }))
      const free = { 'x-user': 'free' }
      const pro = { 'x-user': 'pro', 'x-plan': 'pro' }
      expect((await get(app, free).expect(200)).headers['ratelimit-policy']).toBe('"default";q=1;w=60')
      await get(app, free).expect(429)
      const { headers } = await get(app, pro).expect(200)
      expect(headers['ratelimit-policy']).toBe('"default";q=3;w=60')
      expect(headers.ratelimit).toBe('"default";r=2;t=60')
      await get(app, pro).expect(200)
      await get(app, pro).expect(200)
      await get(app, pro).expect(429)
    })

    test('hazard 138: a user who changes plans keeps what was counted', async () => {
      const app = appWith(express, create({ limit, keyFn: () => 'user' }))
      await get(app).expect(200)
      await get(app).expect(429)
      await get(app, { 'x-plan': 'pro' }).expect(200)
      await get(app, { 'x-plan': 'pro' }).expect(200)
      await get(app, { 'x-plan': 'pro' }).expect(429)
      await get(app).expect(429)
    })
  })

  test.each(both((req) => Number(req.get('x-window'))))(
    'a window by request (%s)',
    async (_, windowSeconds) => {
      const app = appWith(express, create({ windowSeconds }))
      for (const window of ['10', '3600']) {
        const { headers } = await get(app, { 'x-window': window }).expect(200)
        expect(headers['ratelimit-policy']).toBe(`"default";q=2;w=${window}`)
      }
      expect((await get(app, { 'x-window': '3600' }).expect(429)).headers['retry-after']).toMatch(/^3\d{3}$/)
    },
  )

  test.each(both((req) => req.get('x-tenant') ?? ''))(
    'a name by tenant (%s): each has its own counters',
    async (_, name) => {
      const app = appWith(express, create({ limit: 1, name }))
      for (const tenant of ['one', 'two']) {
        const { headers } = await get(app, { 'x-tenant': tenant }).expect(200)
        expect(headers['ratelimit-policy']).toBe(`"${tenant}";q=1;w=60`)
        const denied = await get(app, { 'x-tenant': tenant }).expect(429)
        expect(denied.body['violated-policies']).toEqual([tenant])
      }
    },
  )

  describe('a cost', () => {
    test.each<[string, RateLimitOptions['cost']]>([
      ['as a value', 7],
      ...both((req: Request) => Number(req.get('x-batch'))),
    ])('%s is what the request counts (hazard 127)', async (_, cost) => {
      const limiter = create({ limit: 10, cost })
      const app = appWith(express, limiter)
      const batch = { 'x-batch': '7' }
      expect((await get(app, batch).expect(200)).headers.ratelimit).toMatch(/^"default";r=3;/)
      expect((await get(app, batch).expect(429)).headers.ratelimit).toMatch(/^"default";r=3;/)
      expect(await limiter.peek('127.0.0.1')).toMatchObject({ used: 7, remaining: 3 })
    })

    test('above the limit is a denial that no waiting helps, and says so', async () => {
      const limiter = create({ cost: 3 })
      const response = await get(appWith(express, limiter)).expect(429)
      expect(response.headers).not.toHaveProperty('retry-after')
      expect(response.body.detail).toMatch(/This request alone costs more than that/)
      expect(response.body.detail).not.toMatch(/Retry/)
      expect(response.body['violated-policies']).toEqual(['default'])
      expect(await limiter.peek('127.0.0.1')).toMatchObject({ used: 0 })
    })
  })

  describe('hazard 137: a function that gives no such value is an error, and lets nobody through', () => {
    const wrong: Record<string, unknown[]> = {
      limit: [undefined, null, Number.NaN, -1, 1.5, '10', Number.POSITIVE_INFINITY, {}, true, [5]],
      windowSeconds: [undefined, null, Number.NaN, 0, -1, '60', Number.POSITIVE_INFINITY, {}, [60]],
      cost: [undefined, null, Number.NaN, 0, -1, 1.5, '1', Number.POSITIVE_INFINITY, {}, true],
      name: [null, '', 'a b', 'läufer', 'a\nb', 5, {}, ['a']],
      keyFn: [undefined, null, '', 5, {}, [], [1], ['a', undefined], Number.NaN],
    }
    const rows = Object.entries(wrong).flatMap(([option, values]) => values.map((value) => [option, value]))

    test.each(rows)('%s gives %p', async (option, value) => {
      for (const give of [() => value, async () => value]) {
        const app = appWith(express, create({ [option as string]: give }))
        await get(app).expect(500)
        expect(app.errors).toEqual([expect.any(TypeError)])
        expect(app.handled).toEqual([])
      }
    })

    test.each(['limit', 'windowSeconds', 'cost', 'name', 'keyFn', 'skip'])(
      '%s throws or rejects',
      async (option) => {
        const failure = new Error('plan is not known')
        const ways = [
          () => {
            throw failure
          },
          async () => {
            throw failure
          },
        ]
        for (const fail of ways) {
          const app = appWith(express, create({ [option]: fail }))
          await get(app).expect(500)
          expect(app.errors).toEqual([failure])
          expect(app.handled).toEqual([])
        }
      },
    )

    test('also when it gave the number before that it gives as a text now', async () => {
      let limit: unknown = 5
      const app = appWith(express, create({ limit: () => limit as number }))
      await get(app).expect(200)
      limit = '5'
      await get(app).expect(500)
      expect(app.handled).toHaveLength(1)
    })
  })

  test('hazard 109: a promise of a key is taken at once, so that its rejection ends no process', async () => {
    const { opened, open } = gate()
    const failure = new Error('no such user')
    const limit = async () => {
      await opened
      return 5
    }
    // Jest hides `unhandledRejection`: whether somebody listens is asked of the promise. (`await` does not call the
    // `then` of a plain promise.)
    class Asked extends Promise<string> {}
    const asked = new Asked((_, reject) => {
      opened.then(() => reject(failure))
    })
    const listened = jest.spyOn(asked, 'then')
    const app = appWith(express, create({ limit, keyFn: () => asked }))
    const server = await serve(app)
    const answered = get(server).then((response) => response.status)
    await once(server, 'request')
    await new Promise(setImmediate)
    const listenedAtOnce = listened.mock.calls.length > 0
    open()
    expect(await answered).toBe(500)
    expect(app.errors).toEqual([failure])
    expect(listenedAtOnce).toBe(true)
  })

  describe('hazard 135: skip', () => {
    test.each<[string, RateLimitOptions['skip']]>(both(() => true))(
      'lets through uncounted (%s)',
      async (_, skip) => {
        const app = appWith(express, create({ limit: 0, skip }))
        const { headers } = await get(app).expect(200)
        expect(headers).not.toHaveProperty('ratelimit')
        expect(headers).not.toHaveProperty('ratelimit-policy')
        expect(app.handled[0]?.rateLimit).toBeUndefined()
      },
    )

    test.each([false, undefined, null, 0, 1, 'true', {}, [], new Map()])(
      'that gives %p skips nothing',
      async (value) => {
        for (const give of [() => value, async () => value]) {
          const app = appWith(express, create({ limit: 0, skip: give as RateLimitOptions['skip'] }))
          await get(app).expect(429)
        }
      },
    )

    test('hazard 110: who leaves while it is asked is counted under the own address', async () => {
      const { opened, open } = gate()
      const limiter = create({
        skip: async () => {
          await opened
          return false
        },
      })
      const settled: Promise<void>[] = []
      const server = await serve(
        appWith(express, (req, res, next) => void settled.push(limiter(req, res, next))),
      )
      const socket = connect(portOf(server), '127.0.0.1')
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
      const [req] = await once(server, 'request')
      socket.resetAndDestroy()
      await new Promise((resolve) => req.socket.once('close', resolve))
      open()
      await Promise.all(settled)
      expect(await limiter.peek('127.0.0.1')).toMatchObject({ used: 1 })
    })
  })

  test('a middleware that depends on the request is no limiter for other hits, and says so', async () => {
    const limiter = create({ limit: () => 5 })
    expect(limiter.policies).toEqual([])
    for (const act of [limiter.hit('k'), limiter.peek('k'), limiter.reset('k'), limiter.block('k', 1)])
      await expect(act).rejects.toThrow(TypeError)
  })
})
