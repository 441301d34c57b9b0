import {
  type Batch,
  type Decision,
  Limiter,
  type LimiterOptions,
  MemoryStore,
  rateLimit,
  StoreError,
  type Verdict,
} from 'express-sql-rate-limit'
import { passTime, stopTimers } from './moving-time.js'
import { WatchedStore } from './watched-store.js'

/** A store some keys of which somebody else has locked: what needs them waits until it is given up. */
class LockedStore extends WatchedStore {
  readonly locked = new Set<string>()

  override decide(batch: Batch, signal: AbortSignal): Promise<Verdict[]> {
    const keys = [...batch.hits.flatMap(({ charges }) => charges), ...batch.refusals].map(({ key }) => key)
    return this.#unless(keys, signal) ?? super.decide(batch, signal)
  }

  override async probe(signal: AbortSignal, keys?: readonly string[]): Promise<void> {
    await (this.#unless(keys ?? [], signal) ?? super.probe(signal, keys))
    if (keys?.some((key) => this.locked.has(key))) throw new Error('passed a lock')
  }

  #unless(keys: readonly string[], signal: AbortSignal): Promise<never> | null {
    if (!keys.some((key) => this.locked.has(key))) return null
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
}

const TIMEOUT_MS = 250
const settle = async (): Promise<void> => {
  for (let i = 0; i < 4; i += 1) await new Promise((resolve) => setImmediate(resolve))
}
const wait = async (milliseconds: number): Promise<void> => {
  for (let passed = 0; passed < milliseconds; passed += 10) {
    passTime(10)
    await settle()
  }
}

function setUp(options: Partial<LimiterOptions> = {}) {
  const store = new LockedStore(new MemoryStore({ sweepSeconds: false }))
  const create = (more: Partial<LimiterOptions> = {}) =>
    new Limiter({
      store,
      limit: 1_000_000,
      windowSeconds: 60,
      timeoutMs: TIMEOUT_MS,
      logger: { error() {} },
      ...options,
      ...more,
    })
  const limiter = create()
  /** A hit on each key every ten milliseconds; what became of them, key by key. */
  const hitFor = async (milliseconds: number, keys: readonly string[]): Promise<Map<string, Decision[]>> => {
    const decisions = new Map<string, Decision[]>(keys.map((key) => [key, []]))
    const hits: Promise<unknown>[] = []
    for (let passed = 0; passed < milliseconds; passed += 10) {
      for (const key of keys)
        hits.push(limiter.hit(key).then((decision) => decisions.get(key)?.push(decision)))
      await wait(10)
    }
    await wait(TIMEOUT_MS + 20)
    await Promise.all(hits)
    return decisions
  }
  return { store, create, limiter, hitFor }
}

const KEYS = Array.from({ length: 40 }, (_, i) => `k${i}`)
const degraded = (decisions: readonly Decision[] | undefined): number =>
  (decisions ?? []).filter(({ outcome }) => outcome === 'degraded').length

beforeEach(stopTimers)

describe('a key that somebody else keeps locked', () => {
  test('fails the hits on other keys only until it is found, and never opens the breaker', async () => {
    const { store, limiter, hitFor } = setUp()
    store.locked.add('default:k7')
    const decisions = await hitFor(6000, [...KEYS])
    expect(degraded(decisions.get('k7'))).toBe(600)
    for (const key of KEYS.filter((name) => name !== 'k7')) {
      // Until the batch they were in is given up, and then until their group has passed a test.
      expect(degraded(decisions.get(key))).toBeLessThan(200)
      expect(
        decisions
          .get(key)
          ?.slice(300)
          .map(({ outcome }) => outcome),
      ).not.toContain('degraded')
    }
    const all = KEYS.flatMap((key) => (key === 'k7' ? [] : (decisions.get(key) ?? [])))
    expect(degraded(all) / all.length).toBeLessThan(0.1)
    expect(limiter.storeHealth).toMatchObject({ state: 'closed', pending: 0 })
  })

  test('fails none of the keys that come later', async () => {
    const { store, limiter, hitFor } = setUp()
    store.locked.add('default:k7')
    limiter.hit('k7')
    await wait(TIMEOUT_MS + 10)
    const decisions = await hitFor(1000, ['k7', 'new 1', 'new 2'])
    expect(degraded([...(decisions.get('new 1') ?? []), ...(decisions.get('new 2') ?? [])])).toBe(0)
  })

  test('has its own hits refused at once, once it is known, as a conflict', async () => {
    const { store, limiter, hitFor } = setUp()
    store.locked.add('default:k7')
    await hitFor(1000, ['k7'])
    const hit = limiter.hit('k7')
    await settle()
    expect(await hit).toMatchObject({
      outcome: 'degraded',
      error: { name: 'StoreError', code: 'ERR_STORE_CONFLICT' },
    })
  })

  test('is decided again soon after it is free, with traffic and without', async () => {
    for (const keys of [['k7'], []]) {
      const { store, limiter, hitFor } = setUp()
      store.locked.add('default:k7')
      await hitFor(1000, ['k7', 'k8'])
      store.locked.clear()
      await hitFor(800, keys)
      expect(await limiter.hit('k7')).toMatchObject({ outcome: 'allowed' })
      const tests = store.tested.length
      await wait(2000)
      expect(store.tested.length).toBe(tests)
    }
  })

  test('is found among the keys of one hit, so that the others are free', async () => {
    const { store } = setUp()
    const both = rateLimit({
      store,
      logger: { error() {} },
      limits: [
        { name: 'all', limit: 1_000_000, windowSeconds: 60, keyFn: () => 'all' },
        { name: 'each', limit: 1_000_000, windowSeconds: 60, keyFn: () => 'each' },
      ],
    })
    const all = new Limiter({ store, name: 'all', limit: 1_000_000, windowSeconds: 60 })
    store.locked.add('each:k7')
    const hits: Promise<Decision>[] = []
    for (let i = 0; i < 200; i += 1) {
      hits.push(both.hit('k7'))
      await wait(10)
    }
    expect((await all.hit('k7')).outcome).toBe('allowed')
    store.locked.clear()
    await wait(1000)
    expect((await both.hit('k7')).outcome).toBe('allowed')
    await Promise.all(hits)
  })

  test('of a fixed window fails nobody by the attempts that memory refused', async () => {
    const { store, create, hitFor } = setUp()
    const fixed = create({ name: 'fixed', limit: 1, algorithm: 'fixed-window', windowSeconds: 3600 })
    await fixed.hit('k')
    await fixed.hit('k')
    store.locked.add('fixed@3600:k')
    const refusals = setInterval(() => void fixed.hit('k'), 10)
    const decisions = await hitFor(3000, ['a', 'b'])
    clearInterval(refusals)
    expect(degraded(decisions.get('a'))).toBeLessThan(150)
    expect(
      decisions
        .get('a')
        ?.slice(200)
        .map(({ outcome }) => outcome),
    ).not.toContain('degraded')
  })

  test('does not hold up a caller who asks again and again without a pause', async () => {
    jest.useRealTimers()
    const { store, create } = setUp()
    const limiter = create({ timeoutMs: 50 })
    store.locked.add('default:k7')
    const codeOf = (decision: Decision) => decision.outcome === 'degraded' && decision.error.code
    while (codeOf(await limiter.hit('k7')) !== 'ERR_STORE_CONFLICT');
    setTimeout(() => store.locked.clear(), 100)
    while ((await limiter.hit('k7')).outcome !== 'allowed');
  })
})

test('several locked keys are all found', async () => {
  const { store, hitFor } = setUp()
  const locked = ['k3', 'k7', 'k8', 'k31']
  for (const key of locked) store.locked.add(`default:${key}`)
  const decisions = await hitFor(8000, KEYS)
  for (const key of KEYS) {
    const last = decisions.get(key)?.slice(700) ?? []
    expect(degraded(last)).toBe(locked.includes(key) ? last.length : 0)
  }
})

test('a store that answers nothing is down, not full of locked keys', async () => {
  const { store, limiter, hitFor } = setUp()
  store.before = () => new Promise(() => {})
  await hitFor(2000, ['k7'])
  expect(limiter.storeHealth.state).toBe('open')
  const tests = store.tested.length
  await hitFor(5000, ['k7'])
  expect(store.tested.length).toBe(tests)
  store.before = () => {}
  await wait(2000)
  expect(await limiter.hit('k7')).toMatchObject({ outcome: 'allowed' })
})

test('a store that goes down is not asked about keys that were found locked', async () => {
  const { store, limiter, hitFor } = setUp()
  store.locked.add('default:k7')
  await hitFor(1000, ['k7'])
  store.locked.clear()
  store.before = async () => {
    throw new StoreError('ERR_STORE_CONNECTION', 'refused')
  }
  await hitFor(1200, ['k8', 'k9'])
  expect(limiter.storeHealth.state).toBe('open')
  const tests = store.tested.length
  await wait(5000)
  expect(store.tested.length).toBe(tests)
  store.before = () => {}
  await wait(1500)
  expect(await limiter.hit('k7')).toMatchObject({ outcome: 'allowed' })
})

test('a store that was slow for a moment has no locked keys', async () => {
  const { store, limiter } = setUp()
  store.before = () => new Promise(() => {})
  const hit = limiter.hit('k7')
  await wait(TIMEOUT_MS)
  store.before = () => {}
  expect((await hit).outcome).toBe('degraded')
  await wait(TIMEOUT_MS + 20)
  // The test of the key was sent before, and may have to be repeated.
  await wait(500)
  expect(await limiter.hit('k7')).toMatchObject({ outcome: 'allowed' })
})

test('a test that fails for another reason frees the keys: that is the business of the batches', async () => {
  const { store, limiter } = setUp()
  store.locked.add('default:k7')
  const hit = limiter.hit('k7')
  store.before = async () => {
    throw new StoreError('ERR_STORE_CONNECTION', 'refused')
  }
  store.locked.clear()
  await wait(TIMEOUT_MS + 10)
  await hit
  store.before = () => {}
  await settle()
  expect(await limiter.hit('k7')).toMatchObject({ outcome: 'allowed' })
})
