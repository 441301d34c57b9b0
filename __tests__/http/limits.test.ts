import type { Express } from 'express'
import {
  addressKey,
  MemoryStore,
  type RateLimitsOptions,
  type RequestLimitOptions,
  rateLimit,
  SqliteStore,
  type Store,
} from 'express-sql-rate-limit'
import { parseList } from 'structured-headers'
import request from 'supertest'
import { passTime, stopTime } from '../limiter/moving-time.js'
import { WatchedStore } from '../limiter/watched-store.js'
import { appWith, expressVersions } from './serve.js'

const stores: [string, () => Store][] = [
  ['memory', () => new MemoryStore({ sweepSeconds: false })],
  ['SQLite', () => new SqliteStore({ filename: ':memory:', sweepSeconds: false })],
]

const create = (
  limits: readonly RequestLimitOptions[],
  options: Partial<Omit<RateLimitsOptions, 'limits'>> = {},
) =>
  rateLimit({
    store: new MemoryStore({ sweepSeconds: false }),
    timeoutMs: 60_000,
    onStoreError: 'deny',
    logger: { error() {} },
    ...options,
    limits,
  })

const by =
  (header: string): NonNullable<RequestLimitOptions['keyFn']> =>
  (req) =>
    req.get(header) ?? 'nobody'

const get = (app: Express, headers: Record<string, string> = {}) => request(app).get('/').set(headers)

async function statuses(
  app: Express,
  times: number,
  headers: Record<string, string> = {},
): Promise<number[]> {
  const seen: number[] = []
  for (let i = 0; i < times; i += 1) seen.push((await get(app, headers)).status)
  return seen
}

describe.each(expressVersions)('several limits in one decision, on Express %s', (_, express) => {
  describe.each(stores)('on the %s store', (_, createStore) => {
    let store: Store

    beforeEach(() => {
      stopTime()
      store = createStore()
    })
    afterEach(() => store.close())

    test('hazard 130: a request that one limit denies is charged to none', async () => {
      const limiter = create(
        [
          { name: 'a', limit: 10, windowSeconds: 60, keyFn: () => 'k' },
          { name: 'b', limit: 0, windowSeconds: 60, keyFn: () => 'k' },
        ],
        { store },
      )
      expect(await statuses(appWith(express, limiter), 20)).toEqual(Array(20).fill(429))
      const { limits } = await limiter.peek('k')
      expect(limits.map(({ policy, used }) => [policy, used])).toEqual([
        ['a', 0],
        ['b', 0],
      ])
    })

    test('hazard 143: by account and by address each holds, whatever the other part is', async () => {
      const limiter = create(
        [
          { name: 'account', limit: 2, windowSeconds: 900, keyFn: by('x-account') },
          { name: 'address', limit: 3, windowSeconds: 900, keyFn: (req) => addressKey(req) },
        ],
        { store },
      )
      const app = appWith(express, limiter)
      app.set('trust proxy', 1)
      const ask = async (account: string, address: string) =>
        (await get(app, { 'x-account': account, 'x-forwarded-for': address })).status
      // One account from many addresses.
      expect([await ask('ann', '192.0.2.1'), await ask('ann', '192.0.2.2')]).toEqual([200, 200])
      expect([await ask('ann', '192.0.2.3'), await ask('ann', '192.0.2.4')]).toEqual([429, 429])
      // One address with many accounts; what was denied above has cost it nothing.
      for (const account of ['bob', 'cid', 'dan']) expect(await ask(account, '192.0.2.3')).toBe(200)
      expect(await ask('eve', '192.0.2.3')).toBe(429)
      expect(await ask('eve', '192.0.2.9')).toBe(200)
    })

    test('per second and per hour each holds', async () => {
      const limiter = create(
        [
          { name: 'second', limit: 2, windowSeconds: 1, keyFn: () => 'k' },
          { name: 'hour', limit: 5, windowSeconds: 3600, keyFn: () => 'k' },
        ],
        { store },
      )
      const app = appWith(express, limiter)
      expect(await statuses(app, 3)).toEqual([200, 200, 429])
      passTime(1000)
      expect(await statuses(app, 3)).toEqual([200, 200, 429])
      passTime(1000)
      expect(await statuses(app, 2)).toEqual([200, 429])
      passTime(3_598_000)
      expect(await statuses(app, 3)).toEqual([200, 200, 429])
    })
  })

  describe('tells', () => {
    const limits: RequestLimitOptions[] = [
      { name: 'second', limit: 2, windowSeconds: 1, keyFn: by('x-user') },
      { name: 'minute', limit: 4, windowSeconds: 60, keyFn: by('x-user') },
      { name: 'address', limit: 100, windowSeconds: 3600, keyFn: (req) => addressKey(req) },
    ]

    beforeEach(stopTime)

    test('an admission with all policies, and what is left of each, in one field each', async () => {
      const { headers } = await get(appWith(express, create(limits))).expect(200)
      expect(headers['ratelimit-policy']).toBe('"second";q=2;w=1, "minute";q=4;w=60, "address";q=100;w=3600')
      const left = parseList(String(headers.ratelimit))
      expect(left.map(([name, parameters]) => [name, parameters.get('r')])).toEqual([
        ['second', 1],
        ['minute', 3],
        ['address', 99],
      ])
    })

    test('the decision by the limit with least remaining', async () => {
      const app = appWith(express, create(limits))
      await get(app).expect(200)
      expect(app.handled[0]?.rateLimit).toMatchObject({
        policy: 'second',
        remaining: 1,
        limits: [{ policy: 'second' }, { policy: 'minute' }, { policy: 'address' }],
      })
    })

    test('a denial with all policies, but only the violated limit', async () => {
      const app = appWith(express, create(limits))
      await statuses(app, 2)
      const denied = await get(app).expect(429)
      expect(denied.headers['ratelimit-policy']).toBe(
        '"second";q=2;w=1, "minute";q=4;w=60, "address";q=100;w=3600',
      )
      expect(denied.headers.ratelimit).toBe('"second";r=0;t=1')
      expect(denied.headers['retry-after']).toBe('1')
      expect(denied.body['violated-policies']).toEqual(['second'])
    })

    test('the longest wait of those that denied, whichever comes first', async () => {
      for (const names of [
        [0, 1, 2],
        [2, 1, 0],
      ]) {
        const app = appWith(express, create(names.map((i) => limits[i] as RequestLimitOptions)))
        await statuses(app, 2)
        passTime(10_000)
        await statuses(app, 2)
        const denied = await get(app).expect(429)
        expect(denied.headers['retry-after']).toBe('50')
        expect([...denied.body['violated-policies']].sort()).toEqual(['minute', 'second'])
        expect(denied.body.detail).toMatch(/Retry in 50 seconds/)
      }
    })

    test('no time to wait when one of those that denied never lets it pass', async () => {
      const app = appWith(express, create(limits, { cost: 3 }))
      const { headers, body } = await get(app).expect(429)
      expect(headers).not.toHaveProperty('retry-after')
      expect(body['violated-policies']).toEqual(['second'])
    })

    test('the policies of another limiter on the route in the same field', async () => {
      const other = create([{ name: 'route', limit: 9, windowSeconds: 60 }])
      const { headers } = await get(appWith(express, create(limits), other)).expect(200)
      const names = (field: unknown) => parseList(String(field)).map(([name]) => name)
      expect(names(headers['ratelimit-policy'])).toEqual(['second', 'minute', 'address', 'route'])
      expect(names(headers.ratelimit)).toEqual(['second', 'minute', 'address', 'route'])
    })
  })

  test('asks the store once for all of them', async () => {
    const store = new WatchedStore()
    const limits = ['a', 'b', 'c'].map((name) => ({ name, limit: 5, windowSeconds: 60, keyFn: () => 'k' }))
    await get(appWith(express, create(limits, { store }))).expect(200)
    expect(store.batches.map(({ hits }) => hits.map(({ charges }) => charges.length))).toEqual([[3]])
  })

  test('each may depend on the request', async () => {
    const limiter = create([
      {
        name: 'plan',
        limit: async (req) => Number(req.get('x-plan')),
        windowSeconds: 60,
        keyFn: by('x-user'),
      },
      { name: (req) => String(req.get('x-tenant')), limit: 3, windowSeconds: 60, keyFn: () => 'all' },
    ])
    const app = appWith(express, limiter)
    const { headers } = await get(app, { 'x-plan': '2', 'x-tenant': 'blue' }).expect(200)
    expect(headers['ratelimit-policy']).toBe('"plan";q=2;w=60, "blue";q=3;w=60')
    expect(limiter.policies).toEqual([])
  })

  test('one that depends on the request leaves none that could be asked for by key alone', async () => {
    const limiter = create([
      { name: 'all', limit: 3, windowSeconds: 60 },
      { name: 'plan', limit: () => 2, windowSeconds: 60 },
    ])
    expect(limiter.policies).toEqual([])
    await expect(limiter.peek('a')).rejects.toThrow(TypeError)
  })
})

describe('misuse of `limits` is a TypeError', () => {
  const good = { name: 'a', limit: 5, windowSeconds: 60 }
  const store = () => new MemoryStore({ sweepSeconds: false })
  const wrong: [string, object][] = [
    ['an empty array', { limits: [] }],
    ['undefined', { limits: undefined }],
    ['no array', { limits: good }],
    ['an entry that is no object', { limits: [good, null] }],
    ['a hole', { limits: Object.assign(Array(2), { 0: good }) }],
    ['an unknown option in an entry', { limits: [{ ...good, max: 5 }] }],
    ['an option of the middleware in an entry', { limits: [{ ...good, skip: () => true }] }],
    ['an entry without a limit', { limits: [{ name: 'a', windowSeconds: 60 }] }],
    ['an entry with a wrong window', { limits: [{ ...good, windowSeconds: '60' }] }],
    ['an entry with a wrong keyFn', { limits: [{ ...good, keyFn: 'ip' }] }],
    ['two entries by address under one name', { limits: [good, { ...good, limit: 1, windowSeconds: 1 }] }],
    ...['limit', 'windowSeconds', 'name', 'keyFn', 'algorithm', 'retainSeconds', 'audit'].map(
      (option): [string, object] => [`\`${option}\` beside it`, { limits: [good], [option]: 1 }],
    ),
  ]

  test.each(wrong)('%s', (_, options) => {
    expect(() => rateLimit({ store: store(), ...options } as unknown as RateLimitsOptions)).toThrow(TypeError)
  })

  test('and leaves nothing behind: the same, corrected, is fine', () => {
    const shared = store()
    expect(() => rateLimit({ store: shared, limits: [good, { ...good, name: 'b', limit: -1 }] })).toThrow(
      TypeError,
    )
    expect(() => rateLimit({ store: shared, limits: [good] })).not.toThrow()
  })
})
