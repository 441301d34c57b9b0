import {
  type Algorithm,
  type Decision,
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
const algorithms: Algorithm[] = ['sliding-window', 'fixed-window']

beforeEach(stopTime)

describe.each(stores)('corrections of a limiter on the %s store', (_, createStore) => {
  let store: ReturnType<typeof createStore>

  beforeEach(() => {
    store = createStore()
  })
  afterEach(() => store.close())

  const create = (options: Partial<LimiterOptions> = {}): Limiter =>
    new Limiter({ store, limit: 2, windowSeconds: 60, onStoreError: 'deny', ...options })

  async function admitted(limiter: Limiter, times: number, key: Key = 'k'): Promise<number> {
    let count = 0
    for (let i = 0; i < times; i += 1) if ((await limiter.hit(key)).allowed) count += 1
    return count
  }

  describe.each(algorithms)('a refund, of a %s', (algorithm) => {
    test('makes room for exactly what it gives back, and works once', async () => {
      const limiter = create({ algorithm, limit: 10 })
      const first = await limiter.hit('k', { cost: 4 })
      await limiter.hit('k', { cost: 3 })
      expect(await limiter.refund(first)).toBe(true)
      expect(await limiter.refund(first)).toBe(false)
      expect(await limiter.peek('k')).toMatchObject({ used: 3, remaining: 7 })
      expect(await limiter.hit('k', { cost: 7 })).toMatchObject({ allowed: true, remaining: 0 })
    })

    test('twice at once gives back once', async () => {
      const limiter = create({ algorithm, limit: 10 })
      await limiter.hit('k')
      const decision = await limiter.hit('k')
      const results = await Promise.all([limiter.refund(decision), limiter.refund(decision)])
      expect([...results].sort()).toEqual([false, true])
      expect(await limiter.peek('k')).toMatchObject({ used: 1 })
    })

    test('of a denied decision, of a peek, or of another limiter’s decision is none', async () => {
      const limiter = create({ algorithm })
      await admitted(limiter, 2)
      const other = await create({ algorithm, name: 'other' }).hit('k')
      const none = [await limiter.hit('k'), await limiter.peek('k'), await limiter.peek('nobody'), other]
      const { used } = await limiter.peek('k')
      for (const decision of none) expect(await limiter.refund(decision)).toBe(false)
      expect(await limiter.peek('k')).toMatchObject({ used })
    })

    test('of a copy of a decision is none: who writes one gains nothing', async () => {
      const limiter = create({ algorithm })
      const decision = await limiter.hit('k')
      expect(await limiter.refund({ ...decision })).toBe(false)
      expect(await limiter.peek('k')).toMatchObject({ used: 1 })
    })

    test('hazard 120: of a hit that has left its window takes nothing from the next', async () => {
      const limiter = create({ algorithm })
      const old = await limiter.hit('k')
      passTime(60_001)
      await limiter.hit('k')
      await limiter.refund(old)
      expect(await limiter.peek('k')).toMatchObject({ used: 1 })
      expect(await admitted(limiter, 3)).toBe(1)
    })

    test('of a hit that was reset takes nothing from later ones', async () => {
      const limiter = create({ algorithm })
      const old = await limiter.hit('k')
      await limiter.reset('k')
      passTime(1000)
      await limiter.hit('k')
      await limiter.hit('k')
      await limiter.refund(old)
      expect(await limiter.peek('k')).toMatchObject({ used: 2 })
    })
  })

  test('after a refund the store is asked again, though memory had denied', async () => {
    const limiter = create()
    const sibling = create()
    const first = await limiter.hit('k')
    await limiter.hit('k')
    expect(await limiter.hit('k')).toMatchObject({ allowed: false })
    expect(await sibling.hit('k')).toMatchObject({ allowed: false })
    await limiter.refund(first)
    expect(await sibling.hit('k')).toMatchObject({ allowed: true })
    expect(await limiter.hit('k')).toMatchObject({ allowed: false })
  })

  test('after a reset, too', async () => {
    const limiter = create()
    await admitted(limiter, 3)
    await limiter.reset('k')
    expect(await admitted(limiter, 3)).toBe(2)
  })

  describe.each(algorithms)('a penalty, of a %s', (algorithm) => {
    test('counts over the limit, and denies until enough has left', async () => {
      const limiter = create({ algorithm, limit: 3 })
      expect(await limiter.penalize('k', 5)).toMatchObject({ outcome: 'allowed', used: 5, remaining: 0 })
      expect(await admitted(limiter, 1)).toBe(0)
      passTime(60_001)
      expect(await admitted(limiter, 9)).toBe(3)
    })

    test('counts on a key that is denied already, also from memory', async () => {
      const limiter = create({ algorithm })
      await admitted(limiter, 4)
      const { used } = await limiter.peek('k')
      await limiter.penalize('k', 10)
      expect((await limiter.peek('k')).used).toBeGreaterThanOrEqual(Number(used) + 10)
    })

    test('can be given back', async () => {
      const limiter = create({ algorithm })
      await limiter.hit('k')
      const penalty = await limiter.penalize('k', 10)
      expect(await limiter.refund(penalty)).toBe(true)
      expect(await limiter.peek('k')).toMatchObject({ used: 1, allowed: true })
    })
  })

  describe.each(algorithms)('a block, of a %s', (algorithm) => {
    test('denies everything until it ends, and counts nothing', async () => {
      const limiter = create({ algorithm, limit: 100 })
      await limiter.block('k', 90)
      expect(await limiter.peek('k')).toMatchObject({ allowed: false, retryAfterSeconds: 90 })
      passTime(30_000)
      expect(await limiter.hit('k')).toMatchObject({ outcome: 'denied', retryAfterSeconds: 60 })
      expect(await admitted(limiter, 1, 'other')).toBe(1)
      passTime(59_000)
      expect(await admitted(limiter, 1)).toBe(0)
      passTime(1001)
      expect(await admitted(limiter, 3)).toBe(3)
    })

    test('hazard 157: survives a shorter one, hits, penalties, refunds and a sweep', async () => {
      const limiter = create({ algorithm, limit: 100 })
      const before = await limiter.hit('k')
      await limiter.block('k', 600)
      await limiter.block('k', 1)
      await limiter.hit('k')
      await limiter.penalize('k', 3)
      await limiter.refund(before)
      passTime(300_000)
      await store.sweep()
      expect(await limiter.hit('k')).toMatchObject({ allowed: false, retryAfterSeconds: 300 })
      passTime(300_001)
      expect(await admitted(limiter, 1)).toBe(1)
    })

    test('outlives the window of a key that was full', async () => {
      const limiter = create({ algorithm })
      await admitted(limiter, 3)
      await limiter.block('k', 120)
      passTime(61_000)
      expect(await limiter.hit('k')).toMatchObject({ allowed: false, retryAfterSeconds: 59 })
    })

    test('tells its wait at once, also where memory knew a shorter one', async () => {
      const limiter = create({ algorithm })
      expect(await admitted(limiter, 3)).toBe(2)
      await limiter.block('k', 3600)
      expect(await limiter.hit('k')).toMatchObject({ allowed: false, retryAfterSeconds: 3600 })
    })

    test('ends with a reset', async () => {
      const limiter = create({ algorithm })
      await limiter.block('k', 600)
      expect(await admitted(limiter, 1)).toBe(0)
      await limiter.reset('k')
      expect(await admitted(limiter, 3)).toBe(2)
    })
  })

  test('none of them touches another key or another name', async () => {
    const limiter = create()
    const other = create({ name: 'other' })
    await other.hit('k')
    await limiter.hit('k2')
    await limiter.block('k', 600)
    await limiter.penalize('k', 5)
    await limiter.reset('k')
    expect(await other.peek('k')).toMatchObject({ used: 1 })
    expect(await limiter.peek('k2')).toMatchObject({ used: 1 })
  })
})

describe('misuse is a TypeError', () => {
  const store = new WatchedStore()
  const limiter = new Limiter({ store, limit: 5, windowSeconds: 60 })

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 31_536_001, '60', null, undefined])(
    'a block of %p seconds',
    async (seconds) => {
      await expect(limiter.block('k', seconds as number)).rejects.toThrow(TypeError)
    },
  )
  test.each([0, -1, 1.5, Number.NaN, '1', null, undefined])('a penalty of %p', async (cost) => {
    await expect(limiter.penalize('k', cost as number)).rejects.toThrow(TypeError)
  })
  test.each([undefined, null, 'k', 5])('a refund of %p', async (decision) => {
    await expect(limiter.refund(decision as unknown as Decision)).rejects.toThrow(TypeError)
  })
  test('an empty key', async () => {
    await expect(limiter.block('', 1)).rejects.toThrow(TypeError)
    await expect(limiter.penalize('', 1)).rejects.toThrow(TypeError)
  })
  test('and none of it asks the store', () => {
    expect(store.batches).toEqual([])
  })
})

describe('a store that fails', () => {
  test.each(failures.slice(0, 1))('%s: refund and block tell it, with a code', async (_, fail) => {
    const store = new WatchedStore()
    const limiter = new Limiter({ store, limit: 5, windowSeconds: 60, logger: { error() {} } })
    const decision = await limiter.hit('k')
    store.before = fail
    const told = { name: 'StoreError', code: 'ERR_STORE_CONNECTION' }
    await expect(limiter.refund(decision)).rejects.toMatchObject(told)
    await expect(limiter.block('k', 60)).rejects.toMatchObject(told)
    expect(await limiter.penalize('k', 1)).toMatchObject({ outcome: 'degraded' })
  })
})
