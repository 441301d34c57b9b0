import { Limiter, type LimiterOptions, MemoryStore, type Reading } from 'express-sql-rate-limit'
import { DenyCache } from '../../lib/limiter/deny-cache.js'
import { passTime, stopTime, stopTimers } from './moving-time.js'
import { failures, gate, WatchedStore } from './watched-store.js'

/** A limiter whose store is watched and whose time is moved. */
function limited(options: Partial<LimiterOptions> = {}) {
  const store = new WatchedStore(new MemoryStore({ sweepSeconds: false }))
  const limiter = new Limiter({ store, limit: 2, windowSeconds: 60, ...options })
  const hits = async (times: number, cost = 1): Promise<boolean[]> => {
    const allowed: boolean[] = []
    for (let i = 0; i < times; i += 1) allowed.push((await limiter.hit('k', { cost })).allowed)
    return allowed
  }
  return { store, limiter, hits }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const FIXED = { algorithm: 'fixed-window' } as const

describe('a denial is remembered', () => {
  beforeEach(stopTime)

  test('hazard 158: 10,000 denied hits on one key are one call of the store', async () => {
    const { store, hits } = limited()
    await hits(2)
    expect(await hits(10_000)).not.toContain(true)
    expect(store.batches).toHaveLength(3)
  })

  test('until the event leaves, and then the next hit passes at once', async () => {
    const { store, hits } = limited({ windowSeconds: 0.5 })
    expect(await hits(3)).toEqual([true, true, false])
    passTime(499)
    expect(await hits(1)).toEqual([false])
    expect(store.batches).toHaveLength(3)
    passTime(1)
    expect(await hits(1)).toEqual([true])
    expect(store.batches).toHaveLength(4)
  })

  test('for a second at most, so that a reset in another process is seen', async () => {
    const { store, hits, limiter } = limited()
    await hits(3)
    const elsewhere = store.batches[0]?.hits[0]?.charges[0]?.key ?? ''
    await store.reset([elsewhere])
    passTime(999)
    expect(await hits(1)).toEqual([false])
    passTime(1)
    expect(await hits(1)).toEqual([true])
    expect(await limiter.peek('k')).toMatchObject({ used: 1 })
  })

  test('counted from when the query was sent, not from when the answer came', async () => {
    const { store, hits } = limited({ timeoutMs: 60_000 })
    await hits(2)
    const { opened, open } = gate()
    store.after = () => opened
    const denied = hits(1)
    await turn()
    passTime(600)
    open()
    expect(await denied).toEqual([false])
    passTime(399)
    await hits(1)
    expect(store.batches).toHaveLength(3)
    passTime(1)
    await hits(1)
    expect(store.batches).toHaveLength(4)
  })

  test('for its own cost: a smaller one may still pass and is asked for, a larger one too', async () => {
    const { store, limiter } = limited({ limit: 10 })
    const hit = async (cost: number) => {
      const { allowed, remaining } = await limiter.hit('k', { cost })
      return [allowed, remaining, store.batches.length]
    }
    expect(await hit(7)).toEqual([true, 3, 1])
    expect(await hit(7)).toEqual([false, 3, 2])
    expect(await hit(7)).toEqual([false, 3, 2])
    expect(await hit(8)).toEqual([false, 3, 3])
    expect(await hit(3)).toEqual([true, 0, 4])
  })

  test('for its own key only', async () => {
    const { store, hits, limiter } = limited()
    await hits(3)
    expect(await limiter.hit('K')).toMatchObject({ allowed: true, used: 1 })
    expect(store.batches).toHaveLength(4)
  })

  test('with the time that is left, rounded up', async () => {
    const { store, limiter, hits } = limited()
    await hits(2)
    passTime(57_500)
    expect(await limiter.hit('k')).toMatchObject({ retryAfterSeconds: 3, resetSeconds: 3, used: 2 })
    passTime(499)
    expect(await limiter.hit('k')).toMatchObject({ retryAfterSeconds: 3, resetSeconds: 3, used: 2 })
    passTime(1)
    expect(await limiter.hit('k')).toMatchObject({ retryAfterSeconds: 2, resetSeconds: 2, used: 2 })
    expect(store.batches).toHaveLength(3)
  })

  test('hazard 138: but not by another limiter with a higher limit on the same key', async () => {
    const { store, hits } = limited()
    await hits(3)
    const raised = new Limiter({ store, limit: 20, windowSeconds: 60 })
    expect(await raised.hit('k')).toMatchObject({ allowed: true, used: 3, remaining: 17 })
  })

  test('and a failing store makes no denial', async () => {
    const { store, hits, limiter } = limited({ onStoreError: 'deny', logger: { error() {} } })
    store.before = failures[0]?.[1] as () => unknown
    expect(await hits(2)).toEqual([false, false])
    store.before = () => {}
    expect(await limiter.hit('k')).toMatchObject({ outcome: 'allowed', used: 1 })
  })
})

describe('a reset', () => {
  beforeEach(stopTime)

  test.each(['sliding-window', 'fixed-window'] as const)(
    'drops a denial of a %s at once',
    async (algorithm) => {
      const { limiter, hits } = limited({ algorithm })
      expect(await hits(3)).toEqual([true, true, false])
      await limiter.reset('k')
      expect(await hits(3)).toEqual([true, true, false])
    },
  )

  test('by one limiter is seen by the others of the store', async () => {
    const { store, limiter, hits } = limited()
    const other = new Limiter({ store, limit: 2, windowSeconds: 60 })
    await hits(2)
    expect(await other.hit('k')).toMatchObject({ allowed: false })
    await limiter.reset('k')
    expect(await other.hit('k')).toMatchObject({ allowed: true })
  })

  test('keeps a denial that was decided before it from being remembered after it', async () => {
    const { store, limiter, hits } = limited({ timeoutMs: 60_000 })
    await hits(2)
    const { opened, open } = gate()
    store.after = () => opened
    const denied = hits(1)
    await turn()
    store.after = () => {}
    await limiter.reset('k')
    open()
    expect(await denied).toEqual([false])
    expect(await hits(1)).toEqual([true])
  })

  test('forgets the attempts that were refused from memory before it', async () => {
    const { limiter, hits } = limited(FIXED)
    expect(await hits(8)).toEqual([true, true, ...Array(6).fill(false)])
    await limiter.reset('k')
    expect(await limiter.hit('k')).toMatchObject({ allowed: true, used: 1 })
  })

  test('of another key forgets none of them', async () => {
    const { limiter, hits } = limited(FIXED)
    await hits(8)
    await limiter.reset('other')
    await limiter.hit('another')
    expect(await limiter.peek('k')).toMatchObject({ used: 8 })
  })
})

describe('attempts on a fixed window that are refused from memory', () => {
  beforeEach(stopTimers)

  test('are told to the caller as used', async () => {
    const { limiter, hits } = limited(FIXED)
    await hits(2)
    const used: (number | null)[] = []
    for (const cost of [1, 1, 5, 1]) used.push((await limiter.hit('k', { cost })).used)
    expect(used).toEqual([3, 4, 9, 10])
  })

  test("reach the store's count with the next batch of any limiter", async () => {
    const { store, limiter, hits } = limited(FIXED)
    await hits(5)
    expect(await limiter.peek('k')).toMatchObject({ used: 3 })
    await new Limiter({ store, name: 'other', limit: 1, windowSeconds: 1 }).hit('k')
    expect(store.batches.at(-1)?.refusals).toMatchObject([{ attempts: 2 }])
    expect(await limiter.peek('k')).toMatchObject({ used: 5 })
  })

  test('reach it within a second by themselves, each once', async () => {
    const { store, limiter, hits } = limited(FIXED)
    await hits(5)
    await jest.advanceTimersByTimeAsync(1000)
    expect(await limiter.peek('k')).toMatchObject({ used: 5 })
    await jest.advanceTimersByTimeAsync(10_000)
    expect(store.batches).toHaveLength(4)
    expect(await limiter.peek('k')).toMatchObject({ used: 5 })
    await hits(3)
    await jest.advanceTimersByTimeAsync(1000)
    expect(await limiter.peek('k')).toMatchObject({ used: 8 })
  })

  test('never count in a later window', async () => {
    const { limiter, hits } = limited({ ...FIXED, windowSeconds: 0.5 })
    await hits(5)
    passTime(500)
    expect(await limiter.hit('k')).toMatchObject({ allowed: true, used: 1 })
  })

  test('end with their window, also those of a cost that no window admits', async () => {
    const { hits } = limited({ ...FIXED, windowSeconds: 0.5 })
    expect(await hits(2, 3)).toEqual([false, false])
    passTime(500)
    expect(await hits(1)).toEqual([true])
  })

  test('are none for a sliding window, which counts no denied hit', async () => {
    const { store, limiter, hits } = limited()
    await hits(5)
    await limiter.hit('other')
    expect(store.batches.at(-1)?.refusals).toEqual([])
    expect(await limiter.peek('k')).toMatchObject({ used: 2 })
  })
})

describe('the cache itself', () => {
  const { policy } = new Limiter({ store: new WatchedStore(), limit: 1, windowSeconds: 60, ...FIXED })
  const reading: Reading = {
    denied: true,
    used: 2,
    retryMicros: 5_000_000,
    resetMicros: 5_000_000,
    at: 0,
    windowStart: 0,
  }

  test('hazard 148: keeps so many keys and drops the least recently used', () => {
    const cache = new DenyCache(3, 1000, () => {})
    for (const key of ['a', 'b', 'c']) cache.remember(key, policy, 1, reading, performance.now())
    cache.refuse('a', policy, 1, performance.now())
    cache.remember('d', policy, 1, reading, performance.now())
    const kept = ['a', 'b', 'c', 'd'].filter(
      (key) => cache.refuse(key, policy, 1, performance.now()) !== null,
    )
    expect(kept).toEqual(['a', 'c', 'd'])
  })

  test('loses no attempts when it drops their key', () => {
    const cache = new DenyCache(1, 1000, () => {})
    cache.remember('a', policy, 1, reading, performance.now())
    cache.refuse('a', policy, 3, performance.now())
    cache.remember('b', policy, 1, reading, performance.now())
    expect(cache.takeRefusals(10)).toMatchObject([{ key: 'a', attempts: 3 }])
  })

  test('hands out at most so many keys, and each attempt once', () => {
    const cache = new DenyCache(10, 1000, () => {})
    for (const key of ['a', 'b', 'c']) {
      cache.remember(key, policy, 1, reading, performance.now())
      cache.refuse(key, policy, 1, performance.now())
    }
    expect(cache.takeRefusals(2).map(({ key }) => key)).toEqual(['a', 'b'])
    expect(cache.takeRefusals(2).map(({ key }) => key)).toEqual(['c'])
    expect(cache.takeRefusals(2)).toEqual([])
    cache.refuse('a', policy, 5, performance.now())
    expect(cache.takeRefusals(2)).toMatchObject([{ key: 'a', attempts: 5 }])
  })

  test('knows no prototype: a key named like one of its members was never denied', () => {
    const cache = new DenyCache(10, 1000, () => {})
    for (const key of ['__proto__', 'constructor', 'toString'])
      expect(cache.refuse(key, policy, 1, performance.now())).toBeNull()
  })
})
