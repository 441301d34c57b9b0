import {
  type Decision,
  Limiter,
  type LimiterOptions,
  MemoryStore,
  type OnStoreError,
  StoreError,
  type StoreErrorCode,
} from 'express-sql-rate-limit'
import { passTime, stopTime, stopTimers } from './moving-time.js'
import { gate, WatchedStore } from './watched-store.js'

function setUp(options: Partial<LimiterOptions> = {}) {
  const store = new WatchedStore(new MemoryStore({ sweepSeconds: false }))
  const create = (more: Partial<LimiterOptions> = {}) =>
    new Limiter({ store, limit: 3, windowSeconds: 60, logger: { error() {} }, ...options, ...more })
  const fails = (code: StoreErrorCode) => async (): Promise<never> => {
    throw new StoreError(code, 'no')
  }
  return { store, create, fails, limiter: create() }
}

const hitTimes = async (limiter: Limiter, times: number): Promise<Decision[]> => {
  const decisions: Decision[] = []
  for (let i = 0; i < times; i += 1) decisions.push(await limiter.hit('k'))
  return decisions
}
const allowed = (decisions: readonly Decision[]): boolean[] => decisions.map((decision) => decision.allowed)

const BUSY: StoreErrorCode[] = ['ERR_STORE_CAPACITY', 'ERR_STORE_CONFLICT']
const LENIENT: [string, OnStoreError][] = [
  ["'allow'", 'allow'],
  ["'local'", 'local'],
  ["a function that says 'allow'", () => 'allow'],
]

describe.each(BUSY)('a store that is busy (%s)', (code) => {
  test.each(LENIENT)('lets nobody through uncounted: %s', async (_, onStoreError) => {
    const { store, fails, limiter } = setUp({ onStoreError })
    store.before = fails(code)
    const decisions = await hitTimes(limiter, 5)
    expect(allowed(decisions)).toEqual([true, true, true, false, false])
    for (const decision of decisions)
      expect(decision).toMatchObject({ outcome: 'degraded', local: true, error: { code } })
    expect(await limiter.peek('k')).toMatchObject({ outcome: 'degraded', local: true, used: 3 })
  })

  test.each<[string, OnStoreError]>([
    ["'deny'", 'deny'],
    ["a function that says 'deny'", () => 'deny'],
  ])('lets nobody through at all: %s', async (_, onStoreError) => {
    const { store, fails, limiter } = setUp({ onStoreError })
    store.before = fails(code)
    expect(await limiter.hit('k')).toMatchObject({ outcome: 'degraded', allowed: false, local: false })
  })

  test('leaves its part of the limit to each process', async () => {
    const { store, fails, create } = setUp()
    store.before = fails(code)
    expect(allowed(await hitTimes(create({ limit: 8, localShare: 4 }), 4))).toEqual([
      true,
      true,
      false,
      false,
    ])
  })
})

test('nobody is let through uncounted while the store is left alone because it was busy', async () => {
  stopTime()
  const { store, fails, limiter } = setUp()
  store.before = fails('ERR_STORE_CAPACITY')
  const decisions: Decision[] = []
  for (let i = 0; i < 7; i += 1) {
    decisions.push(await limiter.hit('k'))
    passTime(200)
  }
  expect(limiter.storeHealth).toMatchObject({ state: 'open', lastError: 'ERR_STORE_CAPACITY' })
  expect(decisions.at(-1)).toMatchObject({ error: { code: 'ERR_STORE_DOWN' } })
  expect(allowed(decisions)).toEqual([true, true, true, false, false, false, false])
})

test.each<StoreErrorCode>(['ERR_STORE_CONNECTION', 'ERR_STORE_READ_ONLY', 'ERR_STORE_TIMEOUT'])(
  'a store that is away (%s) is what onStoreError is for',
  async (code) => {
    const { store, fails, limiter } = setUp()
    store.before = fails(code)
    expect(allowed(await hitTimes(limiter, 5))).toEqual([true, true, true, true, true])
  },
)

test('more hits than may wait pass no more than the limit of each key, twice', async () => {
  const { store, limiter } = setUp({ timeoutMs: 60_000 })
  const { opened, open } = gate()
  store.before = () => opened
  const flood: Promise<Decision>[] = []
  for (let i = 0; i < 20_000; i += 1) {
    flood.push(limiter.hit(`a ${i}`))
    if (i % 100 === 0) flood.push(limiter.hit('often'))
  }
  await new Promise(setImmediate)
  open()
  const decisions = await Promise.all(flood)
  const often = decisions.filter(({ key }) => key === 'often')
  expect(often.filter((decision) => decision.allowed).length).toBeLessThanOrEqual(6)
  const passed = decisions.filter((decision) => decision.outcome === 'degraded' && !decision.local)
  expect(passed).toEqual([])
})

const wait = async (milliseconds: number): Promise<void> => {
  for (let passed = 0; passed < milliseconds; passed += 10) {
    passTime(10)
    await new Promise(setImmediate)
    await new Promise(setImmediate)
  }
}
const silence = (): Promise<never> => new Promise(() => {})

test('a store that answers nothing is busy while more wait than it takes at a time', async () => {
  stopTimers()
  const { store, limiter } = setUp()
  store.before = silence
  const flood = Array.from({ length: 600 }, (_, i) => limiter.hit(i % 6 === 0 ? 'often' : `a ${i}`))
  await wait(300)
  const decisions = await Promise.all(flood)
  expect(decisions.filter(({ key, allowed }) => allowed && key === 'often')).toHaveLength(3)
  const alone = limiter.hit('alone')
  await wait(300)
  expect(await alone).toMatchObject({ error: { code: 'ERR_STORE_CAPACITY' }, local: true, allowed: true })
})

test('a store is busy for another second, as it may work off what was given up', async () => {
  stopTimers()
  const { store, limiter } = setUp()
  await Promise.all(Array.from({ length: 600 }, (_, i) => limiter.hit(`a ${i}`)))
  const hitInSilence = async (key: string): Promise<Decision> => {
    store.before = silence
    const hit = limiter.hit(key)
    await wait(300)
    store.before = () => {}
    return hit
  }
  expect(await hitInSilence('b')).toMatchObject({ error: { code: 'ERR_STORE_CAPACITY' }, local: true })
  expect(await limiter.hit('c')).toMatchObject({ outcome: 'allowed' })
  await wait(1000)
  expect(await hitInSilence('d')).toMatchObject({ error: { code: 'ERR_STORE_TIMEOUT' }, local: false })
})

test.each<[string, StoreErrorCode, boolean]>([
  ['is away when a check says so', 'ERR_STORE_CONNECTION', false],
  ['is not taken for one that is away because a check is late too', 'ERR_STORE_TIMEOUT', true],
])('a store that was busy when it was given up %s', async (_, code, isLocal) => {
  stopTimers()
  const { store, fails, create } = setUp()
  const limiter = create({ timeoutMs: 1 })
  store.before = fails('ERR_STORE_CAPACITY')
  const locals: unknown[] = []
  for (let passed = 0; passed < 4000; passed += 100) {
    const decision = await limiter.hit('k')
    if (limiter.storeHealth.state === 'open') store.before = fails(code)
    if (decision.outcome === 'degraded') locals.push(decision.local)
    passTime(100)
    await new Promise(setImmediate)
    await new Promise(setImmediate)
  }
  expect(store.probes).toBeGreaterThan(2)
  expect([locals[0], locals.at(-1)]).toEqual([true, isLocal])
})

test('a store whose connections others have is busy, not silent', async () => {
  const { store, limiter } = setUp({ timeoutMs: 20 })
  Object.defineProperty(store, 'isCrowded', { value: true })
  store.before = () => new Promise(() => {})
  const decisions = await hitTimes(limiter, 4)
  expect(decisions[0]).toMatchObject({ outcome: 'degraded', error: { code: 'ERR_STORE_CAPACITY' } })
  expect(allowed(decisions)).toEqual([true, true, true, false])
})
