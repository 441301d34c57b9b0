import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Hit, Limiter, MemoryStore, type Refusal } from 'express-sql-rate-limit'
import { Batcher } from '../../lib/limiter/batcher.js'
import { passTime, stopTimers } from './moving-time.js'
import { failures, gate, WatchedStore } from './watched-store.js'

const { policy } = new Limiter({
  store: new MemoryStore({ sweepSeconds: false }),
  limit: 2,
  windowSeconds: 60,
})
const hit = (key: string): Hit => ({ charges: [{ key, policy }], cost: 1 })
const refusal = (key: string): Refusal => ({ key, policy, attempts: 1, windowStart: 0, seen: 0 })
const LONG = 60_000
/** Milliseconds from now instead of a deadline. */
const submit = (batcher: Batcher, hit: Hit, timeoutMs: number, maxPending = 10_000) =>
  batcher.submit(hit, performance.now() + timeoutMs, maxPending)

/** A batcher on a watched store, whose refusals are those of the list. */
function setUp(refusals: Refusal[] = []) {
  const store = new WatchedStore()
  const batcher = new Batcher(store, (most) => refusals.splice(0, most))
  const keys = () => store.batches.map(({ hits }) => hits.map(({ charges }) => charges[0]?.key))
  return { store, batcher, keys }
}

/** Collects what becomes of promises, without waiting for them. */
function outcomes(promises: readonly Promise<unknown>[]): string[] {
  const seen: string[] = promises.map(() => 'waiting')
  promises.forEach((promise, i) => {
    promise.then(
      () => {
        seen[i] = 'answered'
      },
      (error) => {
        seen[i] = error.code
      },
    )
  })
  return seen
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('which hits go together', () => {
  test('an idle batcher asks the store before any timer or other callback runs', async () => {
    stopTimers()
    const { batcher, keys } = setUp()
    const answer = submit(batcher, hit('a'), LONG)
    await Promise.resolve()
    expect(keys()).toEqual([['a']])
    await answer
  })

  test('hits made in one callback go in one batch, and each gets its own answer', async () => {
    const { batcher, keys } = setUp()
    const answers = await Promise.all(['a', 'b', 'a', 'a'].map((key) => submit(batcher, hit(key), LONG)))
    expect(keys()).toEqual([['a', 'b', 'a', 'a']])
    expect(answers.map(({ verdict }) => verdict.allowed)).toEqual([true, true, true, false])
    expect(answers.map(({ verdict }) => verdict.readings[0]?.used)).toEqual([1, 1, 2, 2])
  })

  test('hits made while a batch is in flight go together in the next one, in order', async () => {
    const { store, batcher, keys } = setUp()
    const { opened, open } = gate()
    store.before = () => opened
    const answers = [submit(batcher, hit('a'), LONG)]
    for (const key of ['c', 'b', 'd']) {
      await settle()
      answers.push(submit(batcher, hit(key), LONG))
    }
    expect(keys()).toEqual([['a']])
    open()
    await Promise.all(answers)
    expect(keys()).toEqual([['a'], ['c', 'b', 'd']])
  })

  test('at most 500 hits go in one batch', async () => {
    const { store, batcher } = setUp()
    await Promise.all(Array.from({ length: 1201 }, (_, i) => submit(batcher, hit(`k${i}`), LONG)))
    expect(store.batches.map(({ hits }) => hits.length)).toEqual([500, 500, 201])
  })

  test('at most 1,000 keys go in one batch, or those of one hit', async () => {
    const { store, batcher } = setUp()
    const many = (prefix: string, keys: number): Hit => ({
      charges: Array.from({ length: keys }, (_, i) => ({ key: `${prefix} ${i}`, policy })),
      cost: 1,
    })
    const hits = [
      ...Array.from({ length: 300 }, (_, i) => many(`k${i}`, 4)),
      many('large', 1500),
      many('small', 1),
    ]
    await Promise.all(hits.map((each) => submit(batcher, each, LONG)))
    expect(store.batches.map((batch) => batch.hits.length)).toEqual([250, 50, 1, 1])
  })

  test('the answer tells when its batch was sent, not when the hit was made', async () => {
    stopTimers()
    const { store, batcher } = setUp()
    const { opened, open } = gate()
    store.before = () => opened
    const begin = performance.now()
    const first = submit(batcher, hit('a'), LONG)
    await settle()
    const second = submit(batcher, hit('a'), LONG)
    passTime(100)
    open()
    expect((await first).sentAt).toBe(begin)
    expect((await second).sentAt).toBe(begin + 100)
  })
})

describe('when a batch comes back', () => {
  beforeEach(stopTimers)

  test('callers who hit again at once go together, however many promises are between', async () => {
    const { store, batcher } = setUp()
    const wrapped = async (key: string) => (async () => submit(batcher, hit(key), LONG))()
    const caller = async (_: unknown, i: number) => {
      for (let hits = 0; hits < 5; hits += 1) await wrapped(`k${i}`)
    }
    await Promise.all(Array.from({ length: 20 }, caller))
    expect(store.batches.map(({ hits }) => hits.length)).toEqual(Array(5).fill(20))
  })

  /**
   * Hits that come one while the other is in flight, on a store that takes 10 ms, from callers who work so long with
   * each answer.
   *
   * @returns how many batches the store had been asked for as each caller began to work
   */
  async function hitInTurn(store: WatchedStore, workMs: number): Promise<number[]> {
    const batcher = new Batcher(store, () => [])
    const asked: number[] = []
    const callers: Promise<void>[] = []
    const gates = Array.from({ length: 4 }, gate)
    store.before = () => gates[store.batches.length - 1]?.opened
    for (const [i, { open }] of gates.entries()) {
      const caller = async () => {
        await submit(batcher, hit(`k${i}`), LONG)
        asked.push(store.batches.length)
        passTime(workMs)
      }
      callers.push(caller())
      await settle()
      if (i > 0) gates[i - 1]?.open()
      passTime(10)
      if (i === gates.length - 1) open()
      await settle()
    }
    await Promise.all(callers)
    return asked
  }

  test('callers with little to do are answered first, to be in the next batch', async () => {
    expect(await hitInTurn(new WatchedStore(), 1)).toEqual([1, 2, 3, 4])
  })

  test('of callers with much to do those who wait are sent first, so that the store works meanwhile', async () => {
    expect(await hitInTurn(new WatchedStore(), 50)).toEqual([1, 3, 4, 4])
  })

  test('but not to a store that would keep this process from answering', async () => {
    const store = Object.assign(new WatchedStore(), { isInProcess: true })
    expect(await hitInTurn(store, 50)).toEqual([1, 2, 3, 4])
  })
})

describe('when the store is slow', () => {
  beforeEach(stopTimers)

  test('hazard 141: each hit is answered at its own deadline, in flight or waiting', async () => {
    const { store, batcher } = setUp()
    store.before = () => new Promise(() => {})
    const seen = outcomes([submit(batcher, hit('a'), 100), submit(batcher, hit('b'), 200)])
    await settle()
    const waiting = outcomes([submit(batcher, hit('c'), 50), submit(batcher, hit('d'), 300)])
    const at = async (milliseconds: number) => {
      passTime(milliseconds)
      await settle()
      return [...seen, ...waiting]
    }
    expect(await at(49)).toEqual(['waiting', 'waiting', 'waiting', 'waiting'])
    expect(await at(1)).toEqual(['waiting', 'waiting', 'ERR_STORE_TIMEOUT', 'waiting'])
    expect(await at(50)).toEqual(['ERR_STORE_TIMEOUT', 'waiting', 'ERR_STORE_TIMEOUT', 'waiting'])
    expect(await at(100)).toEqual(['ERR_STORE_TIMEOUT', 'ERR_STORE_TIMEOUT', 'ERR_STORE_TIMEOUT', 'waiting'])
    expect(await at(100)).toEqual(Array(4).fill('ERR_STORE_TIMEOUT'))
  })

  test('the store is told to give up once all hits of its batch are overdue, and not before', async () => {
    const { store, batcher } = setUp()
    store.before = () => new Promise(() => {})
    outcomes([submit(batcher, hit('a'), 50), submit(batcher, hit('b'), 100)])
    await settle()
    outcomes([submit(batcher, hit('c'), 1000)])
    passTime(50)
    expect(store.signals[0]?.aborted).toBe(false)
    passTime(50)
    expect(store.signals[0]?.reason).toMatchObject({ name: 'StoreError', code: 'ERR_STORE_TIMEOUT' })
  })

  test('a batch that is answered in time is never told to give up', async () => {
    const { store, batcher } = setUp()
    await submit(batcher, hit('a'), 50)
    passTime(1000)
    expect(store.signals[0]?.aborted).toBe(false)
  })

  test('a hit that is overdue before its batch leaves is not counted', async () => {
    const { store, batcher, keys } = setUp()
    const { opened, open } = gate()
    store.before = () => opened
    const seen = outcomes([submit(batcher, hit('a'), 1000)])
    await settle()
    const late = outcomes([submit(batcher, hit('b'), 50)])
    passTime(50)
    open()
    await settle()
    expect([seen, late]).toEqual([['answered'], ['ERR_STORE_TIMEOUT']])
    expect(keys()).toEqual([['a']])
  })

  test('a hit whose time is over while others are answered had a store with too much to do', async () => {
    const { store, batcher } = setUp()
    const { opened, open } = gate()
    store.before = () => opened
    const first = outcomes([submit(batcher, hit('a'), 1000)])
    await settle()
    const waiting = outcomes([submit(batcher, hit('b'), 100), submit(batcher, hit('c'), 1000)])
    passTime(10)
    store.before = () => new Promise(() => {})
    open()
    await settle()
    const silent = outcomes([submit(batcher, hit('d'), 100)])
    passTime(90)
    await settle()
    passTime(10)
    await settle()
    expect([first, waiting, silent]).toEqual([
      ['answered'],
      ['ERR_STORE_CAPACITY', 'waiting'],
      ['ERR_STORE_TIMEOUT'],
    ])
  })

  test('and more wait than a batch takes, those go at once for which the next is too late', async () => {
    const { store, batcher, keys } = setUp()
    const { opened, open } = gate()
    store.before = () => opened
    const first = submit(batcher, hit('first'), LONG)
    await settle()
    const hasty = outcomes(Array.from({ length: 400 }, () => submit(batcher, hit('hasty'), 120)))
    const patient = outcomes(Array.from({ length: 400 }, () => submit(batcher, hit('patient'), LONG)))
    passTime(100)
    open()
    await first
    await settle()
    await settle()
    const count = (list: readonly unknown[] | undefined, wanted: string): number =>
      (list ?? []).filter((each) => each === wanted).length
    expect(count(hasty, 'ERR_STORE_CAPACITY')).toBe(300)
    expect([count(keys()[1], 'hasty'), count(keys()[1], 'patient')]).toEqual([100, 400])
    expect(count([...hasty, ...patient], 'answered')).toBe(500)
  })

  test('but no more than a batch takes, none goes before its time', async () => {
    const { store, batcher, keys } = setUp()
    const { opened, open } = gate()
    store.before = () => opened
    const first = submit(batcher, hit('first'), LONG)
    await settle()
    const hasty = outcomes(Array.from({ length: 500 }, () => submit(batcher, hit('hasty'), 120)))
    passTime(100)
    open()
    await first
    await settle()
    expect(keys().map((batch) => batch.length)).toEqual([1, 500])
    expect(new Set(hasty)).toEqual(new Set(['answered']))
  })

  test('a late answer changes nothing, and the next batch goes on', async () => {
    const { store, batcher, keys } = setUp()
    const { opened, open } = gate()
    store.after = () => opened
    const late = outcomes([submit(batcher, hit('a'), 50)])
    await settle()
    const next = outcomes([submit(batcher, hit('b'), 1000)])
    passTime(50)
    await settle()
    expect(late).toEqual(['ERR_STORE_TIMEOUT'])
    open()
    await settle()
    expect([late, next]).toEqual([['ERR_STORE_TIMEOUT'], ['answered']])
    expect(keys()).toEqual([['a'], ['b']])
  })

  test('at most one timer stays behind once all are answered, and ends with the deadline it was for', async () => {
    const { batcher } = setUp()
    await Promise.all([submit(batcher, hit('a'), 500), submit(batcher, hit('b'), 50)])
    await settle()
    expect(jest.getTimerCount()).toBeLessThanOrEqual(1)
    passTime(50)
    expect(jest.getTimerCount()).toBe(0)
  })

  test('no timer keeps the process alive once all are answered', async () => {
    jest.useRealTimers()
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    const { batcher } = setUp()
    const answer = submit(batcher, hit('a'), LONG)
    expect(timers()).toBe(before + 1)
    await answer
    await settle()
    expect(timers()).toBe(before)
    const next = submit(batcher, hit('b'), LONG)
    expect(timers()).toBe(before + 1)
    await next
  })
})

describe('when the store fails', () => {
  test.each(failures.filter(([mode]) => mode !== 'never settles'))(
    'and %s, all of the batch are rejected, and the next batch works',
    async (_, fail) => {
      const { store, batcher } = setUp()
      store.before = fail
      const results = await Promise.allSettled(['a', 'b'].map((key) => submit(batcher, hit(key), LONG)))
      expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
      store.before = () => {}
      await expect(submit(batcher, hit('a'), LONG)).resolves.toMatchObject({ verdict: { allowed: true } })
    },
  )

  test('hits that came while the failing batch was in flight are not rejected with it', async () => {
    const { store, batcher } = setUp()
    const { opened, open } = gate()
    store.before = async () => {
      await opened
      if (store.batches.length === 1) throw new Error('lost')
    }
    const failing = outcomes([submit(batcher, hit('a'), LONG)])
    await settle()
    const next = submit(batcher, hit('b'), LONG)
    open()
    await expect(next).resolves.toMatchObject({ verdict: { allowed: true } })
    expect(failing).toEqual([undefined])
  })

  test('more than 10,000 waiting hits are an overload, which is answered at once and passes', async () => {
    const { store, batcher } = setUp()
    const { opened, open } = gate()
    store.before = () => opened
    const answers = [submit(batcher, hit('first'), LONG)]
    await settle()
    for (let i = 0; i < 10_000; i += 1) answers.push(submit(batcher, hit(`k${i}`), LONG))
    await expect(submit(batcher, hit('over'), LONG)).rejects.toMatchObject({ code: 'ERR_STORE_CAPACITY' })
    open()
    await expect(Promise.all(answers)).resolves.toHaveLength(10_001)
    await expect(submit(batcher, hit('over'), LONG)).resolves.toMatchObject({ verdict: { allowed: true } })
  })
})

describe('attempts refused from memory', () => {
  test('go with the next batch', async () => {
    const { store, batcher } = setUp([refusal('x'), refusal('y')])
    await submit(batcher, hit('a'), LONG)
    expect(store.batches.map(({ hits, refusals }) => [hits.length, refusals.length])).toEqual([[1, 2]])
  })

  test('go by themselves when flushed, at most 500 keys at once', async () => {
    const { store, batcher } = setUp(Array.from({ length: 501 }, (_, i) => refusal(`k${i}`)))
    batcher.flush()
    await settle()
    expect(store.batches.map(({ hits, refusals }) => [hits.length, refusals.length])).toEqual([
      [0, 500],
      [0, 1],
    ])
  })

  test('a flush with nothing to count does not ask the store', async () => {
    const { store, batcher } = setUp()
    batcher.flush()
    await settle()
    expect(store.batches).toEqual([])
  })

  test.each(failures.filter(([mode]) => mode !== 'never settles'))(
    'are nobody’s rejection when the store %s',
    async (_, fail) => {
      const { store, batcher } = setUp([refusal('x')])
      store.before = fail
      batcher.flush()
      await settle()
      store.before = () => {}
      await expect(submit(batcher, hit('a'), LONG)).resolves.toMatchObject({ verdict: { allowed: true } })
    },
  )

  test('hold up others for a second at most, also when the garbage collector runs meanwhile', async () => {
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    const { store, batcher } = setUp([refusal('x')])
    // As a driver does it: nothing but the signal ends the wait.
    store.before = () => {
      const signal = store.signals[0]
      return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    }
    batcher.flush()
    await settle()
    store.before = () => {}
    const collecting = setInterval(collect, 100)
    try {
      await expect(submit(batcher, hit('a'), 5000)).resolves.toMatchObject({ verdict: { allowed: true } })
    } finally {
      clearInterval(collecting)
    }
  })
})

describe('a process that stands still', () => {
  test('does not take its own standstill for a failure of the store: the answer is in the socket', async () => {
    const store = new WatchedStore()
    // As with a database: the answer needs a turn of the event loop, and timers run before I/O.
    store.after = () => new Promise(setImmediate)
    const batcher = new Batcher(store, () => [])
    const answer = submit(batcher, hit('a'), 50)
    await new Promise(setImmediate)
    const until = performance.now() + 200
    while (performance.now() < until);
    expect((await answer).verdict.allowed).toBe(true)
  })

  test('gives lost time back once, and no hit waits for ever', async () => {
    const store = new WatchedStore()
    store.before = () => new Promise(() => {})
    const batcher = new Batcher(store, () => [])
    const answer = submit(batcher, hit('a'), 50)
    const until = performance.now() + 200
    while (performance.now() < until);
    await expect(answer).rejects.toMatchObject({ code: 'ERR_STORE_TIMEOUT' })
  })
})
