import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  type Decision,
  type Hit,
  Limiter,
  type LimiterOptions,
  MemoryStore,
  type OnStoreError,
  rateLimit,
  StoreError,
} from 'express-sql-rate-limit'
import { LocalLimiter } from '../../lib/limiter/local-limiter.js'
import { passTime, stopTime } from './moving-time.js'
import { WatchedStore } from './watched-store.js'

const down = async (): Promise<never> => {
  throw new StoreError('ERR_STORE_CONNECTION', 'down')
}

function setUp(options: Partial<LimiterOptions> = {}) {
  const store = new WatchedStore(new MemoryStore({ sweepSeconds: false }))
  const create = (more: Partial<LimiterOptions> = {}) =>
    new Limiter({
      store,
      limit: 3,
      windowSeconds: 60,
      onStoreError: 'local',
      logger: { error() {} },
      ...options,
      ...more,
    })
  return { store, create, limiter: create() }
}

const hitTimes = async (limiter: Limiter, times: number, key = 'k'): Promise<Decision[]> => {
  const decisions: Decision[] = []
  for (let i = 0; i < times; i += 1) decisions.push(await limiter.hit(key))
  return decisions
}
const admitted = async (limiter: Limiter, times: number, key = 'k'): Promise<number> =>
  (await hitTimes(limiter, times, key)).filter(({ allowed }) => allowed).length

beforeEach(stopTime)

describe('while the store is down, `local`', () => {
  test('tells what this process has counted, as degraded', async () => {
    const { store, limiter } = setUp()
    store.before = down
    const state = { policy: 'default', key: 'k', limit: 3, windowSeconds: 60, resetSeconds: 60 }
    expect(await limiter.hit('k')).toEqual({
      outcome: 'degraded',
      allowed: true,
      local: true,
      policy: 'default',
      key: 'k',
      limit: 3,
      used: 1,
      remaining: 2,
      retryAfterSeconds: 0,
      resetSeconds: 60,
      wouldDeny: false,
      limits: [{ ...state, denied: false, used: 1, remaining: 2, retryAfterSeconds: 0 }],
      error: expect.any(StoreError),
    })
    await hitTimes(limiter, 2)
    passTime(15_000)
    expect(await limiter.hit('k')).toMatchObject({
      outcome: 'degraded',
      allowed: false,
      local: true,
      used: 3,
      remaining: 0,
      retryAfterSeconds: 45,
      limits: [{ ...state, denied: true, resetSeconds: 45 }],
    })
  })

  test.each(['sliding-window', 'fixed-window'] as const)(
    'admits exactly the limit of a %s, window after window',
    async (algorithm) => {
      const { store, limiter } = setUp({ algorithm })
      store.before = down
      const counts: number[] = []
      for (let i = 0; i < 4; i += 1) {
        counts.push(await admitted(limiter, 7))
        passTime(60_000)
      }
      expect(counts).toEqual([3, 3, 3, 3])
    },
  )

  test('is exact for hits that come together, and for their costs', async () => {
    const { store, limiter } = setUp({ limit: 10 })
    store.before = down
    const decisions = await Promise.all(Array.from({ length: 100 }, () => limiter.hit('k')))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(10)
    expect((await limiter.hit('other', { cost: 7 })).allowed).toBe(true)
    expect((await limiter.hit('other', { cost: 7 })).allowed).toBe(false)
    expect((await limiter.hit('other', { cost: 3 })).allowed).toBe(true)
  })

  test('charges all limits or none, and shares counts as the limiters share their store', async () => {
    const { store, create } = setUp()
    const both = rateLimit({
      store,
      onStoreError: 'local',
      logger: { error() {} },
      limits: [
        { name: 'a', limit: 1, windowSeconds: 60 },
        { name: 'b', limit: 10, windowSeconds: 60 },
      ],
    })
    store.before = down
    for (let i = 0; i < 5; i += 1) await both.hit('k')
    expect(await create({ name: 'b', limit: 10 }).peek('k')).toMatchObject({ used: 1 })
    expect(await create({ name: 'a', limit: 1 }).hit('k')).toMatchObject({ allowed: false, local: true })
  })

  test.each([
    [100, 4, 25],
    [10, 4, 3],
    [3, 8, 1],
    [0, 8, 0],
    [5, 1, 5],
  ])('divides a limit of %i by a localShare of %i, rounded up: %i', async (limit, localShare, expected) => {
    const { store, limiter } = setUp({ limit, localShare })
    store.before = down
    expect(await admitted(limiter, 120)).toBe(expected)
  })

  test('keeps a key denied that was denied when the store failed, until that denial ends', async () => {
    const { store, limiter } = setUp()
    expect(await admitted(limiter, 5)).toBe(3)
    store.before = down
    passTime(1500)
    expect(await limiter.hit('k')).toMatchObject({
      outcome: 'degraded',
      allowed: false,
      local: true,
      retryAfterSeconds: 59,
    })
    expect(await limiter.peek('k')).toMatchObject({ allowed: false, local: true })
    expect(await limiter.hit('other')).toMatchObject({ allowed: true })
    passTime(57_000)
    expect(await limiter.hit('k')).toMatchObject({ allowed: false, retryAfterSeconds: 2 })
    passTime(2000)
    expect(await limiter.hit('k')).toMatchObject({ allowed: true, used: 1 })
  })

  test('keeps a fixed window denied to its end, and counts those attempts nowhere', async () => {
    const { store, limiter } = setUp({ algorithm: 'fixed-window' })
    await hitTimes(limiter, 4)
    store.before = down
    passTime(2000)
    for (let i = 0; i < 10; i += 1) expect((await limiter.hit('k')).allowed).toBe(false)
    store.before = () => {}
    expect(await limiter.peek('k')).toMatchObject({ outcome: 'denied', used: 4 })
  })

  test('does not keep a key denied that the store has admitted since', async () => {
    const { store, limiter } = setUp({ limit: 1 })
    await hitTimes(limiter, 2)
    // By another process, so that nothing here knows of it.
    await store.reset(['default:k'])
    passTime(1500)
    expect(await limiter.hit('k')).toMatchObject({ outcome: 'allowed' })
    store.before = down
    expect(await limiter.hit('k')).toMatchObject({ allowed: true, local: true })
  })

  test('peeks without counting, and penalizes', async () => {
    const { store, limiter } = setUp()
    store.before = down
    for (let i = 0; i < 5; i += 1)
      expect(await limiter.peek('k')).toMatchObject({
        outcome: 'degraded',
        local: true,
        used: 0,
        remaining: 3,
      })
    expect(await limiter.penalize('k', 100)).toMatchObject({ allowed: true, used: 100 })
    expect(await limiter.hit('k')).toMatchObject({ allowed: false })
  })

  test('gives back what it took, once', async () => {
    const { store, limiter } = setUp()
    store.before = down
    const [first] = await hitTimes(limiter, 3)
    expect((await limiter.hit('k')).allowed).toBe(false)
    expect(await limiter.refund(first as Decision)).toBe(true)
    expect(await limiter.refund(first as Decision)).toBe(false)
    expect(await admitted(limiter, 3)).toBe(1)
  })

  test('denies nobody in a dry run', async () => {
    const { store, limiter } = setUp({ dryRun: true })
    store.before = down
    expect((await hitTimes(limiter, 4)).at(-1)).toMatchObject({ allowed: true, wouldDeny: true, local: true })
  })

  test('may be what a function says of one request', async () => {
    const { store, create } = setUp()
    const limiter = create({
      onStoreError: (error) => (error.code === 'ERR_STORE_CONNECTION' ? 'local' : 'deny'),
    })
    store.before = down
    expect(await admitted(limiter, 5)).toBe(3)
  })

  test('is told in the log', async () => {
    const lines: string[] = []
    const { store, limiter } = setUp({ logger: { error: (line) => lines.push(line) } })
    store.before = down
    await limiter.hit('k')
    expect(lines).toEqual([
      expect.stringMatching(/ERR_STORE_CONNECTION.*limited by what this process counts/),
    ])
  })
})

describe('when the store is back', () => {
  test('it decides, and what was counted here is written nowhere', async () => {
    const { store, limiter } = setUp()
    store.before = down
    await hitTimes(limiter, 5)
    store.before = () => {}
    expect((await hitTimes(limiter, 4)).map(({ outcome }) => outcome)).toEqual([
      'allowed',
      'allowed',
      'allowed',
      'denied',
    ])
  })

  test('and down again within the window, nothing starts anew', async () => {
    const { store, limiter } = setUp()
    for (let i = 0; i < 6; i += 1) {
      store.before = down
      const { allowed } = await limiter.hit('k')
      expect(allowed).toBe(i < 3)
      store.before = () => {}
      await limiter.hit(`other ${i}`)
      passTime(1000)
    }
  })

  test('a reset forgets what was counted here too', async () => {
    const { store, limiter } = setUp()
    store.before = down
    await hitTimes(limiter, 3)
    store.before = () => {}
    await limiter.reset('k')
    store.before = down
    expect(await admitted(limiter, 4)).toBe(3)
  })
})

test('localShare where nothing is counted here is a mistake', () => {
  expect(() => setUp({ onStoreError: 'deny', localShare: 4 })).toThrow(TypeError)
  const others: (OnStoreError | undefined)[] = [undefined, 'allow', 'local', () => 'local']
  for (const onStoreError of others) expect(() => setUp({ onStoreError, localShare: 4 })).not.toThrow()
})

describe('hazard 148: a flood of keys', () => {
  beforeEach(() => {
    jest.useRealTimers()
  })
  const { policy } = new Limiter({ store: new MemoryStore(), limit: 1, windowSeconds: 3600 })
  const hit = (key: string): Hit => ({ charges: [{ key, policy }], cost: 1 })

  test('makes no denied key forgotten, and is bounded in memory', async () => {
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    const local = new LocalLimiter()
    await local.decide(hit('denied'))
    expect((await local.decide(hit('denied'))).allowed).toBe(false)
    collect()
    const before = process.memoryUsage().heapUsed
    for (let i = 0; i < 300_000; i += 1) await local.decide(hit(`flood ${i}`))
    collect()
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(100e6)
    expect((await local.decide(hit('denied'))).allowed).toBe(false)
  }, 60_000)
})
