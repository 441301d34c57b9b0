import { type Decision, Limiter, type LimiterOptions } from 'express-sql-rate-limit'
import { passTime, stopTimers } from './moving-time.js'
import { gate, WatchedStore } from './watched-store.js'

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function setUp(options: Partial<LimiterOptions> = {}) {
  const store = new WatchedStore()
  const create = (more: Partial<LimiterOptions>) =>
    new Limiter({
      store,
      limit: 5,
      windowSeconds: 60,
      timeoutMs: 60_000,
      logger: { error() {} },
      ...options,
      ...more,
    })
  return { store, create }
}

const tally = (decisions: readonly Decision[]): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const { outcome } of decisions) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

describe('a flood on one key', () => {
  test.each([
    ['a sliding window', {}],
    ['a fixed window', { algorithm: 'fixed-window' }],
    ['limits of which the other has a key for each hit', { limit: 5 }],
  ] as const)('of %s takes nobody’s place, and passes no more than the limit', async (_, options) => {
    const { store, create } = setUp()
    const flooded = create({ name: 'flooded', ...options })
    const login = create({ name: 'login', limit: 1 })
    const { opened, open } = gate()
    store.before = () => opened
    const first = login.hit('first')
    await settle()
    const flood = Array.from({ length: 50_000 }, () => flooded.hit('attacker'))
    const others = Array.from({ length: 200 }, (_, i) => login.hit(`user ${i}`))
    await settle()
    expect(login.storeHealth.pending).toBeLessThan(1000)
    open()
    expect(tally([await first, ...(await Promise.all(others))])).toEqual({ allowed: 201 })
    expect(tally(await Promise.all(flood))).toEqual({ allowed: 5, denied: 49_995 })
  })

  test('does not delay the others by more than a batch', async () => {
    const { store, create } = setUp()
    const { opened, open } = gate()
    store.before = () => opened
    const flooded = create({ name: 'flooded', limit: 1_000_000 })
    const login = create({ name: 'login' })
    const flood = [flooded.hit('attacker')]
    await settle()
    for (let i = 0; i < 20_000; i += 1) flood.push(flooded.hit('attacker'))
    const other = login.hit('user')
    await settle()
    open()
    await other
    expect(store.batches.length).toBeLessThanOrEqual(3)
    expect(tally(await Promise.all(flood))).toEqual({ allowed: 20_001 })
  })

  test('of hits of many costs is decided too', async () => {
    const { store, create } = setUp()
    const flooded = create({ limit: 1000 })
    const { opened, open } = gate()
    store.before = () => opened
    const flood = Array.from({ length: 5000 }, (_, i) => flooded.hit('attacker', { cost: 1 + (i % 97) }))
    await settle()
    open()
    const decisions = await Promise.all(flood)
    expect(decisions.map(({ outcome }) => outcome)).not.toContain('degraded')
    let admitted = 0
    decisions.forEach(({ allowed }, i) => {
      if (allowed) admitted += 1 + (i % 97)
    })
    expect(admitted).toBeLessThanOrEqual(1000)
    expect(admitted).toBeGreaterThan(1000 - 97)
  })

  test('whose hits come with a limiter that gives way early takes nobody’s place either', async () => {
    const { store, create } = setUp()
    const { opened, open } = gate()
    store.before = () => opened
    const flooded = create({ name: 'flooded', maxPending: 100 })
    const other = create({ name: 'other', maxPending: 100 })
    const flood = [flooded.hit('attacker')]
    await settle()
    for (let i = 0; i < 1000; i += 1) flood.push(flooded.hit('attacker'))
    const hits = Array.from({ length: 50 }, (_, i) => other.hit(`user ${i}`))
    await settle()
    open()
    expect(tally(await Promise.all(hits))).toEqual({ allowed: 50 })
    expect(tally(await Promise.all(flood))).toEqual({ allowed: 5, denied: 996 })
  })
})

describe('hits that wait for a place', () => {
  test('have their deadlines all the same', async () => {
    stopTimers()
    const { store, create } = setUp()
    store.before = () => new Promise(() => {})
    const patient = create({ name: 'patient', timeoutMs: 10_000 })
    const flooded = create({ name: 'flooded', timeoutMs: 250 })
    const stuck = patient.hit('stuck')
    await settle()
    const begin = performance.now()
    let latest = 0
    const flood = Array.from({ length: 3000 }, async () => {
      const decision = await flooded.hit('attacker')
      latest = performance.now()
      return decision
    })
    await settle()
    expect(flooded.storeHealth.pending).toBeLessThan(1000)
    for (let passed = 0; passed < 400; passed += 10) {
      passTime(10)
      await settle()
      await settle()
    }
    expect(tally(await Promise.all(flood))).toEqual({ degraded: 3000 })
    expect(latest - begin).toBeLessThanOrEqual(250 + 10)
    passTime(10_000)
    expect((await stuck).outcome).toBe('degraded')
  })

  test('of less patient limiters do not wait for more patient ones of the same key', async () => {
    stopTimers()
    const { store, create } = setUp()
    store.before = () => new Promise(() => {})
    const patient = create({ timeoutMs: 10_000 })
    const hasty = create({ timeoutMs: 50 })
    const hits = Array.from({ length: 1000 }, () => patient.hit('k'))
    await settle()
    const quick = hasty.hit('k')
    await settle()
    passTime(50)
    await expect(quick).resolves.toMatchObject({ outcome: 'degraded', error: { code: 'ERR_STORE_CAPACITY' } })
    for (let i = 0; i < 10; i += 1) {
      passTime(10_000)
      await settle()
      await settle()
    }
    await Promise.all(hits)
  })
})

test('more waiting hits than maxPending are an overload of that limiter, and of none that has more', async () => {
  const { store, create } = setUp()
  const { opened, open } = gate()
  store.before = () => opened
  const few = create({ name: 'few', maxPending: 20 })
  const many = create({ name: 'many' })
  const hits = [many.hit('first')]
  await settle()
  for (let i = 0; i < 20; i += 1) hits.push(many.hit(`k${i}`))
  expect(await few.hit('k')).toMatchObject({ outcome: 'degraded', error: { code: 'ERR_STORE_CAPACITY' } })
  hits.push(many.hit('k'))
  open()
  expect(tally(await Promise.all(hits))).toEqual({ allowed: 22 })
})
