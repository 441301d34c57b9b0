import { spawn } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import {
  type Decision,
  type DecisionMessage,
  Limiter,
  type LimiterOptions,
  MemoryStore,
} from 'express-sql-rate-limit'
import fc from 'fast-check'
import { passTime, stopTime, stopTimers } from './moving-time.js'
import { failures, gate, WatchedStore } from './watched-store.js'

const algorithms = ['sliding-window', 'fixed-window'] as const
const quiet = { error() {} }

/** How many hits of its batches asked for a lease, and how many did not. */
const asked = (store: WatchedStore): [number, number] => {
  const hits = store.batches.flatMap((batch) => batch.hits)
  const leases = hits.filter(({ lease }) => lease !== undefined)
  return [leases.length, hits.length - leases.length]
}

/** Waits until what was to be given back is. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('a limiter with a lease', () => {
  /** What all processes count in. */
  let shared: MemoryStore
  let store: WatchedStore

  /** A new store, which goes by the clock of now. */
  function open(): void {
    shared = new MemoryStore({ sweepSeconds: false })
    store = new WatchedStore(shared)
  }

  beforeEach(() => {
    stopTime()
    open()
  })
  afterEach(() => shared.close())

  const create = (options: Partial<LimiterOptions> = {}): Limiter =>
    new Limiter({
      store,
      limit: 100,
      windowSeconds: 60,
      lease: 10,
      onStoreError: 'deny',
      logger: quiet,
      ...options,
    })
  /** A limiter as another process has it: nothing is shared but the store. */
  const elsewhere = (options: Partial<LimiterOptions> = {}): Limiter =>
    create({ store: new WatchedStore(shared), ...options })

  const hits = (limiter: Limiter, count: number, key = 'k', cost = 1): Promise<Decision[]> =>
    Promise.all(Array.from({ length: count }, () => limiter.hit(key, { cost })))
  const allowedOf = (decisions: readonly Decision[]): number =>
    decisions.filter(({ outcome }) => outcome === 'allowed').length
  async function inTurn(limiter: Limiter, count: number, cost = 1): Promise<number> {
    let allowed = 0
    for (let i = 0; i < count; i += 1) allowed += Number((await limiter.hit('k', { cost })).allowed)
    return allowed
  }

  describe.each(algorithms)('on a %s', (algorithm) => {
    test('asks the store about one of as many hits as a lease has units', async () => {
      const limiter = create({ algorithm })
      expect(await inTurn(limiter, 100)).toBe(100)
      expect(asked(store)).toEqual([10, 0])
      expect(await inTurn(limiter, 50)).toBe(0)
      expect(asked(store)).toEqual([11, 0])
    })

    test('tells each hit what is used and left, as if each had been counted by itself', async () => {
      const limiter = create({ algorithm, limit: 25 * 10 })
      const used = []
      for (let i = 0; i < 25; i += 1) used.push((await limiter.hit('k')).used)
      expect(used).toEqual(Array.from({ length: 25 }, (_, i) => i + 1))
      expect(await limiter.hit('k')).toMatchObject({ outcome: 'allowed', used: 26, remaining: 224 })
    })

    test('admits exactly the limit of hits that come at once, with few questions', async () => {
      const limiter = create({ algorithm })
      const decisions = await hits(limiter, 256)
      expect(allowedOf(decisions)).toBe(100)
      for (const { used } of decisions.filter(({ allowed }) => allowed)) {
        expect(used).toBeGreaterThanOrEqual(1)
        expect(used).toBeLessThanOrEqual(100)
      }
      // Ten leases were granted and the others denied; whoever waited for those is denied from memory.
      expect(store.batches.map((batch) => batch.hits.length)).toEqual([26])
    })

    test('gives back what it has not used when the lease ends', async () => {
      stopTimers()
      open()
      const limiter = create({ algorithm })
      await hits(limiter, 3)
      const other = elsewhere({ algorithm })
      expect(await other.peek('k')).toMatchObject({ used: 10 })
      passTime(1000)
      await settled()
      expect(await other.peek('k')).toMatchObject({ used: 3 })
      // Nothing is held now, so that no timer runs.
      expect(jest.getTimerCount()).toBe(0)
    })

    test('asks again when a lease is over, though units of it are left', async () => {
      const limiter = create({ algorithm })
      await limiter.hit('k')
      passTime(1000)
      expect(await limiter.hit('k')).toMatchObject({ outcome: 'allowed' })
      expect(asked(store)).toEqual([2, 0])
      await settled()
      expect((await limiter.peek('k')).used).toBe(2)
    })

    test('charges a hit what it costs, and leases what hits of that cost can use', async () => {
      const limiter = create({ algorithm })
      expect(await inTurn(limiter, 33, 3)).toBe(33)
      expect(asked(store)).toEqual([11, 0])
      expect(await limiter.peek('k')).toMatchObject({ used: 99, remaining: 1 })
    })

    test('leaves a hit that costs more than a lease to the store', async () => {
      const limiter = create({ algorithm })
      expect(await limiter.hit('k', { cost: 11 })).toMatchObject({ outcome: 'allowed', used: 11 })
      expect(asked(store)).toEqual([0, 1])
    })

    test('gives back a lease that has too little for a hit, and takes another', async () => {
      const limiter = create({ algorithm })
      await limiter.hit('k', { cost: 4 })
      await limiter.hit('k', { cost: 5 })
      await settled()
      // Of the first, 8 units, four are given back; of the second, 10 units, five are held.
      expect(await limiter.peek('k')).toMatchObject({ used: 9 })
      expect(await elsewhere({ algorithm }).peek('k')).toMatchObject({ used: 14 })
    })

    test('takes what is there when the limit is near, and decides the rest exactly', async () => {
      const limiter = create({ algorithm })
      await elsewhere({ algorithm, lease: undefined }).hit('k', { cost: 95 })
      expect(allowedOf(await hits(limiter, 10))).toBe(5)
      expect(asked(store)).toEqual([1, 5])
    })

    test('shows in a peek what hits here have used; elsewhere all that is held counts', async () => {
      const limiter = create({ algorithm })
      await hits(limiter, 4)
      expect(await limiter.peek('k')).toMatchObject({ used: 4, remaining: 96 })
      expect(await elsewhere({ algorithm }).peek('k')).toMatchObject({ used: 10, remaining: 90 })
      await elsewhere({ algorithm, lease: undefined }).hit('k', { cost: 90 })
      // Full, but a hit here would pass.
      expect(await limiter.peek('k')).toMatchObject({ outcome: 'allowed', used: 94, remaining: 6 })
      expect(await elsewhere({ algorithm }).peek('k')).toMatchObject({ outcome: 'denied', used: 100 })
    })

    test('gives back a hit from a lease as any other, once', async () => {
      const limiter = create({ algorithm })
      const decisions = await hits(limiter, 10)
      expect(await limiter.refund(decisions[7] as Decision)).toBe(true)
      expect(await limiter.refund(decisions[7] as Decision)).toBe(false)
      expect(await limiter.peek('k')).toMatchObject({ used: 9 })
      for (const decision of decisions) await limiter.refund(decision)
      expect(await limiter.peek('k')).toMatchObject({ used: 0 })
    })

    test('holds a lease over a refund: it only makes room', async () => {
      const limiter = create({ algorithm })
      const first = await limiter.hit('k')
      await limiter.refund(first)
      expect(await inTurn(limiter, 9)).toBe(9)
      expect(asked(store)).toEqual([1, 0])
      expect(await limiter.peek('k')).toMatchObject({ used: 9 })
    })

    test('forgets a lease with a reset, and takes nothing from what comes after it', async () => {
      const limiter = create({ algorithm })
      const refund = jest.spyOn(store, 'refund')
      await hits(limiter, 3)
      await limiter.reset('k')
      await settled()
      expect(refund).not.toHaveBeenCalled()
      expect(await limiter.peek('k')).toMatchObject({ used: 0 })
      passTime(5)
      expect(await inTurn(limiter, 101)).toBe(100)
      await settled()
      expect(await elsewhere({ algorithm }).peek('k')).toMatchObject({ remaining: 0 })
    })

    test('ends a lease with a block, at once', async () => {
      const limiter = create({ algorithm })
      const sibling = create({ algorithm })
      await hits(limiter, 3)
      await sibling.block('k', 60)
      expect(await limiter.hit('k')).toMatchObject({ outcome: 'denied', retryAfterSeconds: 60 })
      await settled()
      // A fixed window counts the attempt as well.
      expect(await limiter.peek('k')).toMatchObject({ used: algorithm === 'fixed-window' ? 4 : 3 })
    })

    test('ends a lease with a penalty, at once', async () => {
      const limiter = create({ algorithm })
      await hits(limiter, 3)
      await limiter.penalize('k', 97)
      await settled()
      expect(await limiter.hit('k')).toMatchObject({ outcome: 'denied' })
      expect(asked(store)).toEqual([2, 1])
    })

    test('holds nothing of a lease that a block overtook', async () => {
      const { opened, open } = gate()
      const limiter = create({ algorithm, timeoutMs: 60_000 })
      store.after = () => opened
      const first = limiter.hit('k')
      await settled()
      store.after = () => {}
      await create({ algorithm }).block('k', 60)
      open()
      expect(await first).toMatchObject({ outcome: 'allowed' })
      expect(await limiter.hit('k')).toMatchObject({ outcome: 'denied' })
      await settled()
      expect(await limiter.peek('k')).toMatchObject({ used: algorithm === 'fixed-window' ? 2 : 1 })
    })

    test('neither holds nor gives back a lease that a reset overtook', async () => {
      const { opened, open } = gate()
      const limiter = create({ algorithm, timeoutMs: 60_000 })
      const refund = jest.spyOn(store, 'refund')
      store.after = () => opened
      const first = limiter.hit('k')
      await settled()
      store.after = () => {}
      await limiter.reset('k')
      open()
      await first
      await settled()
      expect(refund).not.toHaveBeenCalled()
      expect(await limiter.hit('k')).toMatchObject({ outcome: 'allowed', used: 1 })
    })

    test('in a dry run counts as in earnest, and hooks and channels see every hit', async () => {
      const seen: (number | null)[] = []
      const published: Decision[] = []
      const listen = (message: unknown): unknown => published.push((message as DecisionMessage).decision)
      subscribe('express-sql-rate-limit:decision', listen)
      const limiter = create({
        algorithm,
        limit: 20,
        lease: 2,
        dryRun: true,
        onDecision: ({ used }) => seen.push(used),
      })
      const decisions = []
      for (let i = 0; i < 22; i += 1) decisions.push(await limiter.hit('k'))
      unsubscribe('express-sql-rate-limit:decision', listen)
      expect(decisions.map(({ allowed }) => allowed)).toEqual(new Array(22).fill(true))
      expect(decisions.filter(({ wouldDeny }) => wouldDeny)).toHaveLength(2)
      expect(seen).toHaveLength(22)
      expect(published).toEqual(decisions)
    })
  })

  test('a lease of a fixed window ends with the window', async () => {
    const limiter = create({ algorithm: 'fixed-window' })
    passTime(59_900)
    await hits(limiter, 3)
    passTime(100)
    expect(await limiter.hit('k')).toMatchObject({ outcome: 'allowed', used: 1 })
    expect(asked(store)).toEqual([2, 0])
    await settled()
    expect(await limiter.peek('k')).toMatchObject({ used: 1 })
  })

  test('a lease lives for a tenth of a short window at the most', async () => {
    const limiter = create({ windowSeconds: 1 })
    await limiter.hit('k')
    passTime(79)
    await limiter.hit('k')
    expect(asked(store)).toEqual([1, 0])
    passTime(21)
    await limiter.hit('k')
    expect(asked(store)).toEqual([2, 0])
  })

  test('a lease is over when the machine was suspended, though its clock stood still', async () => {
    const limiter = create()
    await limiter.hit('k')
    const before = performance.now()
    jest.setSystemTime(Date.now() + 120_000)
    expect(performance.now()).toBe(before)
    await limiter.hit('k')
    expect(asked(store)).toEqual([2, 0])
  })

  test('hits that come while a lease is on its way wait for it', async () => {
    const limiter = create({ timeoutMs: 60_000 })
    const { opened, open } = gate()
    store.before = () => opened
    const first = hits(limiter, 1)
    await settled()
    const later = hits(limiter, 12)
    await settled()
    open()
    expect(allowedOf([...(await first), ...(await later)])).toBe(13)
    // The first lease has ten units; three hits were too many for it.
    expect(asked(store)).toEqual([2, 0])
  })

  test('a hit that waits for a lease is answered in its own time', async () => {
    stopTimers()
    open()
    store.before = () => new Promise(() => {})
    const limiter = create({ timeoutMs: 100 })
    const answers: string[] = []
    void limiter.hit('k').then(({ outcome }) => answers.push(outcome))
    await settled()
    passTime(60)
    const late = limiter.hit('k').then(({ outcome }) => answers.push(outcome))
    passTime(40)
    await settled()
    expect(answers).toEqual(['degraded'])
    passTime(60)
    await late
    expect(answers).toEqual(['degraded', 'degraded'])
  })

  test.each(failures.slice(0, 4))('a store that %s fails each hit, and no later one', async (_, fail) => {
    const limiter = create()
    store.before = fail
    const decisions = await hits(limiter, 5)
    expect(decisions.map(({ outcome }) => outcome)).toEqual(new Array(5).fill('degraded'))
    store.before = () => {}
    expect(allowedOf(await hits(limiter, 5))).toBe(5)
  })

  test('a lease that comes too late serves its own hit, and is given back', async () => {
    const limiter = create({ timeoutMs: 60_000 })
    const { opened, open } = gate()
    store.after = () => opened
    const decisions = hits(limiter, 3)
    await settled()
    passTime(1000)
    store.after = () => {}
    open()
    expect(allowedOf(await decisions)).toBe(3)
    await settled()
    expect(asked(store)).toEqual([1, 2])
    expect(await elsewhere().peek('k')).toMatchObject({ used: 3 })
  })

  test('a store that knows no leases counts each hit', async () => {
    const limiter = create()
    const { decide } = store
    store.decide = async (batch, signal) => {
      const plain = batch.hits.map(({ charges, cost }) => ({ charges, cost }))
      return decide.call(store, { ...batch, hits: plain }, signal)
    }
    expect(await inTurn(limiter, 12)).toBe(12)
    expect(await limiter.peek('k')).toMatchObject({ used: 12 })
  })

  test('what cannot be given back stays counted, and breaks nothing', async () => {
    const limiter = create()
    await limiter.hit('k')
    store.refund = () => Promise.reject(new Error('down'))
    passTime(1000)
    expect(await limiter.hit('k')).toMatchObject({ outcome: 'allowed' })
    await settled()
    expect(await elsewhere().peek('k')).toMatchObject({ used: 20 })
  })

  test('keys have leases of their own, and the longest unused gives way', async () => {
    const limiter = create()
    await hits(limiter, 1, 'first')
    await Promise.all(Array.from({ length: 9_999 }, (_, i) => limiter.hit(`key ${i}`)))
    expect(await elsewhere().peek('first')).toMatchObject({ used: 10 })
    await limiter.hit('one more')
    await settled()
    expect(await elsewhere().peek('first')).toMatchObject({ used: 1 })
  })

  test('no window holds more than the limit, however three processes use their leases', async () => {
    const step = fc.record({
      who: fc.nat(2),
      wait: fc.integer({ min: 0, max: 60 }),
      count: fc.integer({ min: 1, max: 6 }),
    })
    let round = 0
    const property = fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 60 }), async (steps) => {
      round += 1
      const key = `round ${round}`
      const limiters = Array.from({ length: 3 }, () => elsewhere({ limit: 40, windowSeconds: 1, lease: 4 }))
      const used: number[] = []
      for (const { who, wait, count } of steps) {
        passTime(wait)
        const decisions = await hits(limiters[who] as Limiter, count, key)
        used.push(...new Array(allowedOf(decisions)).fill(Date.now()))
      }
      for (const end of used) {
        expect(used.filter((at) => at > end - 1000 && at <= end).length).toBeLessThanOrEqual(40)
      }
    })
    await fc.assert(property, { numRuns: 40 })
  })
})

test('a process that holds a lease ends by itself', async () => {
  const script = `
    import { Limiter, MemoryStore } from './lib/index.ts'
    const limiter = new Limiter({ store: new MemoryStore(), limit: 100, windowSeconds: 600, lease: 10 })
    console.log((await limiter.hit('k')).outcome)
  `
  const arguments_ = ['--import', 'tsx', '--input-type=module', '--eval', script]
  const child = spawn(process.execPath, arguments_, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text
  })
  const [code] = await once(child, 'exit')
  expect([code, output.trim()]).toEqual([0, 'allowed'])
})
