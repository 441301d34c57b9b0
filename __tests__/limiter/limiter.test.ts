import {
  type HitOptions,
  type Key,
  Limiter,
  type LimiterOptions,
  MemoryStore,
  SqliteStore,
} from 'express-sql-rate-limit'
import { passTime, stopTime } from './moving-time.js'
import { failures, WatchedStore } from './watched-store.js'

const stores = [
  ['memory', () => new MemoryStore({ sweepSeconds: false })],
  ['SQLite', () => new SqliteStore({ filename: ':memory:', sweepSeconds: false })],
] as const
const algorithms = ['sliding-window', 'fixed-window'] as const

describe.each(stores)('a limiter on the %s store', (_, createStore) => {
  let store: ReturnType<typeof createStore>

  beforeEach(() => {
    stopTime()
    store = createStore()
  })
  afterEach(() => store.close())

  // A failure of the store must not look like an admission.
  const create = (options: Partial<LimiterOptions> = {}): Limiter =>
    new Limiter({ store, limit: 2, windowSeconds: 60, onStoreError: 'deny', ...options })

  async function admitted(limiter: Limiter, times: number, key: Key = 'k'): Promise<number> {
    let count = 0
    for (let i = 0; i < times; i += 1) if ((await limiter.hit(key)).allowed) count += 1
    return count
  }

  const state = (rest: object): object => ({
    key: 'k',
    limit: 2,
    windowSeconds: 60,
    used: 2,
    remaining: 0,
    resetSeconds: 50,
    ...rest,
  })

  test('tells an admission: what is used, what is left and until when', async () => {
    const limiter = create({ name: 'login' })
    await limiter.hit('k')
    passTime(10_500)
    expect(await limiter.hit('k')).toEqual({
      outcome: 'allowed',
      allowed: true,
      policy: 'login',
      key: 'k',
      limit: 2,
      used: 2,
      remaining: 0,
      retryAfterSeconds: 0,
      resetSeconds: 50,
      wouldDeny: false,
      limits: [state({ policy: 'login', denied: false, retryAfterSeconds: 0 })],
    })
  })

  test('tells a denial as an answer, with the time to wait', async () => {
    const limiter = create()
    await admitted(limiter, 2)
    passTime(10_500)
    expect(await limiter.hit('k')).toEqual({
      outcome: 'denied',
      allowed: false,
      policy: 'default',
      key: 'k',
      limit: 2,
      used: 2,
      remaining: 0,
      retryAfterSeconds: 50,
      resetSeconds: 50,
      wouldDeny: false,
      limits: [state({ policy: 'default', denied: true, retryAfterSeconds: 50 })],
    })
  })

  test('shows several parts as JSON, and counts them apart from a text that looks the same', async () => {
    const limiter = create({ limit: 1 })
    expect(await limiter.hit(['a:b', 'c'])).toMatchObject({ allowed: true, key: '["a:b","c"]' })
    expect(await limiter.hit('["a:b","c"]')).toMatchObject({ allowed: true })
    expect(await limiter.hit(['a', 'b:c'])).toMatchObject({ allowed: true })
    expect(await limiter.hit(['a:b', 'c'])).toMatchObject({ allowed: false })
  })

  test('peeks without counting, also at a key that nobody used', async () => {
    const limiter = create({ limit: 1 })
    expect(await limiter.peek('k')).toMatchObject({ allowed: true, used: 0, remaining: 1, resetSeconds: 0 })
    await limiter.hit('k')
    for (let i = 0; i < 3; i += 1)
      expect(await limiter.peek('k')).toMatchObject({ allowed: false, used: 1, retryAfterSeconds: 60 })
  })

  test('a reset forgets one key and no other', async () => {
    const limiter = create()
    for (const key of ['k', 'k2', 'K']) await admitted(limiter, 2, key)
    await limiter.reset('k')
    expect(await admitted(limiter, 3)).toBe(2)
    expect(await admitted(limiter, 1, 'k2')).toBe(0)
    expect(await admitted(limiter, 1, 'K')).toBe(0)
  })

  test.each(['', '%', '*', '_'])('hazard 157: a reset of %j touches no other key', async (pattern) => {
    const limiter = create()
    await admitted(limiter, 2)
    await (pattern === ''
      ? expect(limiter.reset(pattern)).rejects.toThrow(TypeError)
      : expect(limiter.reset(pattern)).resolves.toBeUndefined())
    expect(await limiter.peek('k')).toMatchObject({ used: 2 })
  })

  test.each(algorithms)('hazard 123: a %s admits exactly its limit in every window', async (algorithm) => {
    const limiter = create({ algorithm, limit: 5 })
    const counts: number[] = []
    for (let i = 0; i < 5; i += 1) {
      counts.push(await admitted(limiter, 7))
      passTime(60_000)
    }
    expect(counts).toEqual([5, 5, 5, 5, 5])
  })

  test.each(algorithms)(
    'hazard 124: on a %s, who waits as told is admitted, and not earlier',
    async (algorithm) => {
      const limiter = create({ algorithm, limit: 3, windowSeconds: 10 })
      for (let i = 0; i < 100; i += 1) {
        const cost = 1 + (i % 3)
        passTime((i * 137) % 1000)
        let decision = await limiter.hit('k', { cost })
        while (decision.allowed) decision = await limiter.hit('k', { cost })
        passTime(((decision.retryAfterSeconds as number) - 1) * 1000)
        expect(await limiter.hit('k', { cost })).toMatchObject({ outcome: 'denied' })
        passTime(1000)
        expect(await limiter.hit('k', { cost })).toMatchObject({ outcome: 'allowed' })
      }
    },
  )

  test('hazard 122: a client that keeps knocking is admitted whenever its turn comes', async () => {
    const limiter = create({ limit: 1, windowSeconds: 5 })
    let count = 0
    for (let i = 0; i < 200; i += 1) {
      count += await admitted(limiter, 1)
      passTime(100)
    }
    expect(count).toBe(4)
  })

  test.each([
    ['fixed-window', 10],
    ['sliding-window', 5],
  ] as const)('hazard 152: around an edge a %s of limit 5 admits %i', async (algorithm, count) => {
    const limiter = create({ algorithm, limit: 5 })
    passTime(59_999)
    const before = await admitted(limiter, 5)
    passTime(2)
    expect(before + (await admitted(limiter, 5))).toBe(count)
  })

  test('hazard 127: cost 7 at limit 10 passes once, and the rest stays what it is', async () => {
    const limiter = create({ limit: 10 })
    expect(await limiter.hit('k', { cost: 7 })).toMatchObject({ allowed: true, remaining: 3 })
    expect(await limiter.hit('k', { cost: 7 })).toMatchObject({ allowed: false, remaining: 3 })
    expect(await limiter.hit('k', { cost: 3 })).toMatchObject({ allowed: true, remaining: 0 })
  })

  test.each(algorithms)(
    'a cost above the limit of a %s is denied with no time to wait',
    async (algorithm) => {
      const limiter = create({ algorithm })
      for (let i = 0; i < 3; i += 1)
        expect(await limiter.hit('k', { cost: 3 })).toMatchObject({ allowed: false, retryAfterSeconds: null })
    },
  )

  test.each(algorithms)('hazard 137: limit 0 of a %s denies everything for ever', async (algorithm) => {
    const limiter = create({ algorithm, limit: 0 })
    for (let i = 0; i < 3; i += 1) {
      expect(await limiter.hit('k')).toMatchObject({ allowed: false, retryAfterSeconds: null, remaining: 0 })
      passTime(60_000)
    }
  })

  test.each(algorithms)('a %s of a millisecond is a millisecond', async (algorithm) => {
    const limiter = create({ algorithm, windowSeconds: 0.001 })
    expect(await admitted(limiter, 3)).toBe(2)
    passTime(1)
    expect(await admitted(limiter, 3)).toBe(2)
  })

  test('hazard 136: a window of 30 days still holds on its last day, and needs no timer that long', async () => {
    const timers = jest.spyOn(globalThis, 'setTimeout')
    const limiter = create({ windowSeconds: 30 * 86_400 })
    await admitted(limiter, 2)
    expect(await limiter.hit('k')).toMatchObject({ retryAfterSeconds: 30 * 86_400 })
    passTime(29 * 86_400_000)
    expect(await limiter.hit('k')).toMatchObject({ allowed: false, retryAfterSeconds: 86_400 })
    for (const [, delay = 0] of timers.mock.calls) expect(delay).toBeLessThan(2 ** 31)
    passTime(86_400_000)
    expect(await admitted(limiter, 1)).toBe(1)
  })

  test('hazard 138: a limit that is lowered or raised counts what was admitted before', async () => {
    await admitted(create({ limit: 10 }), 8)
    expect(await create({ limit: 5 }).hit('k')).toMatchObject({ allowed: false, used: 8, remaining: 0 })
    expect(await create({ limit: 20 }).peek('k')).toMatchObject({ allowed: true, used: 8, remaining: 12 })
  })

  test('hazard 129: limiters of two names on one key do not see each other', async () => {
    expect(await admitted(create({ name: 'a', limit: 3, windowSeconds: 20 }), 9)).toBe(3)
    expect(await admitted(create({ name: 'b', limit: 5, windowSeconds: 60 }), 9)).toBe(5)
  })

  test('two windows of one name on one key each stay exact', async () => {
    const short = create({ limit: 3, windowSeconds: 20 })
    const long = create({ limit: 5, windowSeconds: 60 })
    expect(await admitted(short, 9)).toBe(3)
    expect(await admitted(long, 9)).toBe(2)
    passTime(20_001)
    expect(await admitted(long, 1)).toBe(0)
    expect(await admitted(short, 9)).toBe(3)
    passTime(40_000)
    expect(await admitted(long, 9)).toBe(2)
  })

  test.each<[string, Key]>([
    ['10,000 characters', 'x'.repeat(10_000)],
    ['10,000 emoji', '😀'.repeat(10_000)],
    ['NUL', 'a\0b'],
    ['trailing blanks', 'a  '],
    ['a quote, a backslash and a percent sign', `'"\\%`],
    ['half a surrogate pair', 'a\ud83d'],
    ['the other half', 'a\ude00'],
    ['__proto__', '__proto__'],
    ['constructor', 'constructor'],
    ['parts that are empty', ['', '']],
  ])('hazards 142 and 154: a key of %s has its own limit, and never an error', async (_, key) => {
    const limiter = create()
    await admitted(limiter, 2, 'a')
    expect(await admitted(limiter, 5, key)).toBe(2)
  })

  test('hazard 151: of 300 hits at once on a cold key exactly the limit passes', async () => {
    const limiter = create({ limit: 10, timeoutMs: 60_000 })
    const decisions = await Promise.all(Array.from({ length: 300 }, () => limiter.hit('cold')))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(10)
    expect(decisions.filter(({ outcome }) => outcome === 'denied')).toHaveLength(290)
  })
})

describe('misuse is a TypeError', () => {
  const store = new WatchedStore()
  const limiter = new Limiter({ store, limit: 5, windowSeconds: 60 })

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1_000_000_000_001, '1', null, 1n, {}, true])(
    'a cost of %p',
    async (cost) => {
      const act = limiter.hit('k', { cost } as HitOptions)
      const type = cost === null ? 'null' : typeof cost
      await expect(act).rejects.toThrow(TypeError)
      await expect(act).rejects.toThrow(new RegExp(`\`cost\` to be a whole number .*got .*\\(${type}\\)`))
    },
  )

  test.each([
    ['an unknown option', { costs: 5 }],
    ['a number instead of options', 5],
    ['null instead of options', null],
  ])('%s', async (_, options) => {
    await expect(limiter.hit('k', options as HitOptions)).rejects.toThrow(TypeError)
  })

  test.each(['hit', 'peek', 'reset'] as const)('an empty key for %s', async (method) => {
    await expect(limiter[method]('')).rejects.toThrow(/^Expected `key` to be .*got '' \(string\)$/)
  })

  test('and none of it asks the store', () => {
    expect(store.batches).toEqual([])
  })
})

test('a reset tells that the store failed, with a code', async () => {
  const store = new WatchedStore()
  store.before = failures[0]?.[1] as () => unknown
  const limiter = new Limiter({ store, limit: 1, windowSeconds: 1 })
  await expect(limiter.reset('k')).rejects.toMatchObject({ name: 'StoreError', code: 'ERR_STORE_CONNECTION' })
})

test('decides and gives back in tests of applications that have stopped all timers', async () => {
  jest.useFakeTimers()
  const limiter = new Limiter({ store: new MemoryStore(), limit: 1, windowSeconds: 60 })
  const decision = await limiter.hit('k')
  expect((await limiter.hit('k')).outcome).toBe('denied')
  expect(await limiter.refund(decision)).toBe(true)
  expect((await limiter.hit('k')).outcome).toBe('allowed')
  jest.advanceTimersByTime(60_001)
  expect((await limiter.hit('k')).outcome).toBe('allowed')
  jest.useRealTimers()
})
