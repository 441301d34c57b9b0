import { execFile } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { promisify } from 'node:util'
import { type BreakerMessage, Limiter, type LimiterOptions, StoreError } from 'express-sql-rate-limit'
import { passTime, stopTimers } from './moving-time.js'
import { gate, WatchedStore } from './watched-store.js'

const TIMEOUT_MS = 250

const refused = async (): Promise<never> => {
  throw new StoreError('ERR_STORE_CONNECTION', 'The connection to the database failed (ECONNREFUSED)')
}
const silent = (): Promise<never> => new Promise(() => {})
const settle = async (): Promise<void> => {
  for (let i = 0; i < 4; i += 1) await new Promise((resolve) => setImmediate(resolve))
}
/** Moves time as it goes by, so that what follows from one timer may set the next. */
const wait = async (milliseconds: number): Promise<void> => {
  for (let passed = 0; passed < milliseconds; passed += 10) {
    passTime(10)
    await settle()
  }
}

function setUp(options: Partial<LimiterOptions> = {}) {
  const store = new WatchedStore()
  const logger = { error: jest.fn<void, [string]>(), warn: jest.fn<void, [string]>() }
  const create = (more: Partial<LimiterOptions> = {}) =>
    new Limiter({
      store,
      limit: 10,
      windowSeconds: 60,
      timeoutMs: TIMEOUT_MS,
      logger,
      ...options,
      ...more,
    })
  const limiter = create()
  let keys = 0
  /** One hit after the other for so long, each on a key of its own. */
  const hitFor = async (milliseconds: number): Promise<void> => {
    const until = performance.now() + milliseconds
    while (performance.now() < until) {
      keys += 1
      const hit = limiter.hit(`key ${keys}`)
      await wait(10)
      await Promise.race([hit, settle()])
    }
  }
  const ofStore = (lines: string[][]): string[] => lines.flat().filter((line) => line.startsWith('Watched'))
  const told = () => ({ down: ofStore(logger.error.mock.calls), back: ofStore(logger.warn.mock.calls) })
  return { store, limiter, create, logger, hitFor, told }
}

/** A store that was found to be down. */
async function setUpDown(options: Partial<LimiterOptions> = {}) {
  const all = setUp(options)
  all.store.before = refused
  await all.hitFor(600)
  expect(all.limiter.storeHealth.state).toBe('open')
  return all
}

beforeEach(stopTimers)

describe('a store counts as down', () => {
  test('when batches have failed three times and for half a second, and not before', async () => {
    const { store, limiter } = setUp()
    store.before = refused
    for (let i = 0; i < 100; i += 1) await limiter.hit('k')
    expect(limiter.storeHealth.state).toBe('closed')
    passTime(499)
    await limiter.hit('k')
    expect(limiter.storeHealth.state).toBe('closed')
    passTime(1)
    await limiter.hit('k')
    expect(limiter.storeHealth).toEqual({
      state: 'open',
      since: new Date().toISOString(),
      lastError: 'ERR_STORE_CONNECTION',
      pending: 0,
    })
  })

  test('after the third batch, however seldom they come', async () => {
    const { store, limiter } = setUp()
    store.before = refused
    for (const state of ['closed', 'closed', 'open']) {
      await limiter.hit('k')
      expect(limiter.storeHealth.state).toBe(state)
      passTime(60_000)
    }
  })

  test('when it does not answer for three deadlines', async () => {
    const { store, limiter, hitFor } = setUp()
    store.before = silent
    await hitFor(2.5 * TIMEOUT_MS)
    expect(limiter.storeHealth.state).toBe('closed')
    await hitFor(TIMEOUT_MS)
    expect(limiter.storeHealth).toMatchObject({ state: 'open', lastError: 'ERR_STORE_TIMEOUT' })
  })

  test('also when there is but one key, which could be what is locked', async () => {
    const { store, limiter } = setUp()
    store.before = silent
    for (let passed = 0; passed < 1500; passed += 50) {
      void limiter.hit('k')
      await wait(50)
    }
    expect(limiter.storeHealth).toMatchObject({ state: 'open', lastError: 'ERR_STORE_TIMEOUT' })
  })

  test('not when one batch between was decided', async () => {
    const { store, limiter } = setUp()
    for (let i = 0; i < 20; i += 1) {
      store.before = i % 3 === 2 ? () => {} : refused
      await limiter.hit('k')
      passTime(1000)
    }
    expect(limiter.storeHealth).toMatchObject({ state: 'closed', lastError: 'ERR_STORE_CONNECTION' })
  })

  test.each(['ERR_STORE_CONFLICT', 'ERR_STORE_CLOSED'] as const)('not for %s', async (code) => {
    const { store, limiter } = setUp()
    store.before = async () => {
      throw new StoreError(code, 'as it says')
    }
    for (let i = 0; i < 20; i += 1) {
      await limiter.hit('k')
      passTime(1000)
    }
    expect(limiter.storeHealth).toMatchObject({ state: 'closed', lastError: null })
  })

  test('not for conflicts that last until the deadline', async () => {
    const { store, limiter, hitFor } = setUp()
    // As a store does that heeds its signal and knows why it had not finished.
    store.before = () =>
      new Promise((_, reject) => {
        store.signals.at(-1)?.addEventListener('abort', () => {
          reject(new StoreError('ERR_STORE_CONFLICT', 'deadlocks on every try'))
        })
      })
    // A probe has a key of its own, and meets none.
    store.probe = async () => {}
    await hitFor(3000)
    expect(limiter.storeHealth.state).toBe('closed')
  })

  test('not for callers in a hurry, as long as a probe passes', async () => {
    const { store, limiter, hitFor } = setUp({ timeoutMs: 20 })
    store.before = () => new Promise((resolve) => setTimeout(resolve, 60))
    await hitFor(3000)
    expect(store.probes).toBeGreaterThan(0)
    expect(limiter.storeHealth.state).toBe('closed')
    store.before = silent
    await hitFor(3000)
    expect(limiter.storeHealth.state).toBe('open')
  })
})

describe('while the store is down', () => {
  test('hits and peeks are answered at once, without the store, and say why', async () => {
    const { store, limiter, create } = await setUpDown()
    const deny = create({ onStoreError: 'deny' })
    const asked = store.batches.length
    for (const decided of [
      limiter.hit('k'),
      limiter.hit('other'),
      limiter.peek('k'),
      limiter.penalize('k', 5),
    ]) {
      expect(await decided).toMatchObject({
        outcome: 'degraded',
        allowed: true,
        error: { name: 'StoreError', code: 'ERR_STORE_DOWN', cause: { code: 'ERR_STORE_CONNECTION' } },
      })
    }
    expect(await deny.hit('k')).toMatchObject({ outcome: 'degraded', allowed: false })
    expect(store.batches).toHaveLength(asked)
  })

  test('hits that were waiting are answered as soon as that is known', async () => {
    const { store, limiter } = setUp({ timeoutMs: 60_000 })
    const { opened, open } = gate()
    store.before = refused
    await limiter.hit('k')
    await limiter.hit('k')
    passTime(500)
    store.before = () => opened.then(refused)
    const hits = [limiter.hit('a')]
    await settle()
    hits.push(limiter.hit('b'), limiter.hit('c'))
    expect(limiter.storeHealth.pending).toBe(3)
    open()
    const codes = (await Promise.all(hits)).map((decision) => 'error' in decision && decision.error.code)
    expect(codes).toEqual(['ERR_STORE_CONNECTION', 'ERR_STORE_DOWN', 'ERR_STORE_DOWN'])
  })

  test('refunds, blocks and resets reject at once', async () => {
    const { store, limiter, hitFor } = setUp()
    const decision = await limiter.hit('k')
    store.before = refused
    await hitFor(600)
    const down = { code: 'ERR_STORE_DOWN' }
    await expect(limiter.refund(decision)).rejects.toMatchObject(down)
    await expect(limiter.block('k', 5)).rejects.toMatchObject(down)
    await expect(limiter.reset('k')).rejects.toMatchObject(down)
  })

  test('refunds that were waiting are not tried, and there is an end to how many wait', async () => {
    const { store, limiter, hitFor } = setUp({ limit: 100_000 })
    const decisions = await Promise.all(Array.from({ length: 11_000 }, () => limiter.hit('k')))
    const { opened, open } = gate()
    const refund = jest.spyOn(store, 'refund')
    store.before = () => opened.then(refused)
    const results = Promise.allSettled(decisions.map((decision) => limiter.refund(decision)))
    await settle()
    store.before = refused
    await hitFor(600)
    expect(limiter.storeHealth.state).toBe('open')
    open()
    const codes = (await results).map((result) => (result as PromiseRejectedResult).reason.code)
    expect(refund).toHaveBeenCalledTimes(1)
    expect([...new Set(codes)]).toEqual(['ERR_STORE_CONNECTION', 'ERR_STORE_DOWN', 'ERR_STORE_CAPACITY'])
  })

  test('denials that memory is certain of are still denials', async () => {
    const { store, limiter, create, hitFor } = setUp()
    const one = create({ name: 'one', limit: 1 })
    await one.hit('x')
    expect(await one.hit('x')).toMatchObject({ outcome: 'denied' })
    store.before = refused
    await hitFor(600)
    expect(limiter.storeHealth.state).toBe('open')
    expect(await one.hit('x')).toMatchObject({ outcome: 'denied' })
  })

  test('it is checked about twice a second, whether there is traffic or not', async () => {
    const { store } = await setUpDown()
    const before = store.probes
    await wait(10_000)
    expect(store.probes - before).toBeGreaterThanOrEqual(15)
    expect(store.probes - before).toBeLessThanOrEqual(25)
  })

  test('a check that hangs is given up, and followed by another', async () => {
    const { store } = await setUpDown()
    store.before = silent
    const before = store.probes
    await wait(10_000)
    expect(store.probes - before).toBeGreaterThanOrEqual(6)
  })

  test('who asks again and again without a pause does not keep it from being found back', async () => {
    jest.useRealTimers()
    const { store, create } = setUp()
    const limiter = create({ name: 'real' })
    store.before = refused
    while (limiter.storeHealth.state !== 'open') await limiter.hit('k')
    store.before = () => {}
    while ((await limiter.hit('k')).outcome !== 'allowed');
    expect(limiter.storeHealth.state).toBe('closed')
  })

  test('no timer keeps the process alive', async () => {
    const timers = jest.spyOn(globalThis, 'setTimeout')
    const { limiter } = await setUpDown()
    await limiter.hit('k')
    expect(timers.mock.results.at(-1)?.value.hasRef()).toBe(false)
  })
})

describe('when the store is back', () => {
  test('it decides again within two seconds, also without traffic', async () => {
    const { store, limiter } = await setUpDown()
    await wait(5000)
    store.before = () => {}
    const back = performance.now()
    while (limiter.storeHealth.state === 'open') await wait(10)
    expect(performance.now() - back).toBeLessThanOrEqual(700)
    expect(limiter.storeHealth.state).toBe('half-open')
    expect(await limiter.hit('k')).toMatchObject({ outcome: 'allowed' })
    expect(limiter.storeHealth.state).toBe('closed')
    const idle = await setUpDown()
    idle.store.before = () => {}
    await wait(1300)
    expect(idle.limiter.storeHealth.state).toBe('closed')
  })

  test('also when it came back while a check was hanging', async () => {
    const { store, limiter } = await setUpDown()
    store.before = silent
    await wait(3000)
    store.before = () => {}
    await wait(2000)
    expect(await limiter.hit('k')).toMatchObject({ outcome: 'allowed' })
  })

  test('one failure is enough to open the breaker again, if the check was wrong', async () => {
    const { store, limiter, told } = await setUpDown()
    store.before = () => {}
    while (limiter.storeHealth.state === 'open') await wait(10)
    store.before = refused
    expect(await limiter.hit('k')).toMatchObject({ error: { code: 'ERR_STORE_CONNECTION' } })
    expect(await limiter.hit('k')).toMatchObject({ error: { code: 'ERR_STORE_DOWN' } })
    expect(told()).toEqual({ down: [expect.anything()], back: [] })
  })

  test('nothing checks it any more', async () => {
    const { store, limiter } = await setUpDown()
    store.before = () => {}
    await wait(1300)
    const before = store.probes
    await wait(5000)
    await limiter.hit('k')
    expect(store.probes).toBe(before)
  })
})

test('a store that is closed while it is down is not checked any more, and not said to be back', async () => {
  const { store, limiter, told } = await setUpDown()
  store.before = () => {}
  await store.close()
  await wait(1000)
  const before = store.probes
  await wait(5000)
  expect(store.probes).toBe(before)
  expect(await limiter.hit('k')).toMatchObject({ error: { code: 'ERR_STORE_CLOSED' } })
  expect(told().back).toEqual([])
})

describe('what is told', () => {
  test('is one line when the store goes down and one when it is back, for all limiters with a logger', async () => {
    const { store, create, told, hitFor } = setUp()
    const others = Array.from({ length: 5 }, (_, i) => create({ name: `other-${i}` }))
    store.before = refused
    for (const other of others) await other.hit('k')
    await hitFor(10_000)
    store.before = () => {}
    await wait(1300)
    await hitFor(1000)
    expect(told()).toEqual({
      down: [expect.stringMatching(/down: ERR_STORE_CONNECTION: .*ECONNREFUSED/)],
      back: [expect.stringMatching(/back after \d+\.\d s/)],
    })
  })

  test('comes by error() where a logger has no warn(), and a logger that throws breaks nothing', async () => {
    const lines: string[] = []
    const { store, create, limiter } = setUp({ logger: { error: (line) => lines.push(line) } })
    create({
      logger: {
        error() {
          throw new Error('log is full')
        },
      },
    })
    store.before = refused
    for (let i = 0; i < 3; i += 1) {
      await limiter.hit('k')
      passTime(400)
    }
    store.before = () => {}
    await wait(1300)
    expect(lines.filter((line) => line.startsWith('Watched'))).toHaveLength(2)
  })

  test('is published on a channel, with the store and its health', async () => {
    const messages: BreakerMessage[] = []
    const listen = (message: unknown): void => {
      messages.push(message as BreakerMessage)
    }
    subscribe('express-sql-rate-limit:breaker', listen)
    const { store } = await setUpDown()
    store.before = () => {}
    await wait(1300)
    unsubscribe('express-sql-rate-limit:breaker', listen)
    // Other stores of this process may go down, or come back.
    const ours = messages.filter((message) => message.store === store)
    expect(ours.map(({ previous, health }) => [previous, health.state])).toEqual([
      ['closed', 'open'],
      ['open', 'half-open'],
      ['half-open', 'closed'],
    ])
  })
})

test('a process ends by itself while its stores are down, and their checks hang', async () => {
  const script = `
    import { Limiter, MemoryStore } from './lib/index.ts'
    const goDown = async () => {
      const store = new MemoryStore()
      store.decide = () => Promise.reject(new Error('gone'))
      store.probe = () => new Promise(() => {})
      const limiter = new Limiter({ store, limit: 1, windowSeconds: 60, logger: { error() {} } })
      while (limiter.storeHealth.state === 'closed') {
        await limiter.hit('k')
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      console.log(limiter.storeHealth.state)
    }
    for (let i = 0; i < 30; i += 1) setTimeout(goDown, 40 * i)
  `
  const arguments_ = ['--import', 'tsx', '--input-type=module', '--eval', script]
  const { stdout } = await promisify(execFile)(process.execPath, arguments_, { timeout: 25_000 })
  expect(stdout.trim().split('\n')).toEqual(Array(30).fill('open'))
})
