import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { TOTALS_GO_ROUND_AT } from '../../lib/stores/running-total.js'
import type { Store, StoreInspection } from '../../lib/stores/store.js'
import { StoreError } from '../../lib/stores/store-error.js'
import { admitted, charge, decide, hit, hitOn, peek, policy } from './policies.js'
import { type OpenSubject, START, type Subject } from './subject.js'

const yes = (count: number): boolean[] => new Array<boolean>(count).fill(true)
const no = (count: number): boolean[] => new Array<boolean>(count).fill(false)

const inspect = async (store: Store): Promise<StoreInspection> => {
  if (store.inspect === undefined) throw new Error('the store tells nothing of itself')
  return store.inspect(new AbortController().signal)
}

/** What every store must do. Each store's own test file calls this once for each way to open it. */
export function storeContract(open: OpenSubject): void {
  let subject: Subject
  let store: Store
  const at = (millis: number): Promise<void> => subject.setClock(START + millis)

  beforeEach(async () => {
    subject = await open()
    store = subject.store
    await store.install()
    await at(0)
  })
  afterEach(() => subject.close())

  describe('a sliding window', () => {
    it('admits up to the limit and denies the rest', async () => {
      expect(await admitted(store, 5, 'a', policy({ limit: 3 }))).toEqual([...yes(3), ...no(2)])
    })

    it('does not count denied hits, so that a client that keeps knocking recovers (hazard 122)', async () => {
      const one = policy({ limit: 1, windowSeconds: 5 })
      const outcomes: number[] = []
      for (let millis = 0; millis < 20_000; millis += 100) {
        await at(millis)
        if (!(await hit(store, 'a', one)).denied) outcomes.push(millis)
      }
      expect(outcomes).toEqual([0, 5_000, 10_000, 15_000])
    })

    it('lets a hit go at the very instant its window has passed, and not before', async () => {
      await admitted(store, 3, 'a', policy())
      await at(59_999)
      expect((await hit(store, 'a', policy())).denied).toBe(true)
      // The three were stored within microseconds of each other.
      await at(60_001)
      expect(await admitted(store, 4, 'a', policy())).toEqual([...yes(3), ...no(1)])
    })

    it('never admits more than the limit around the edge of a window (hazard 152)', async () => {
      const ten = policy({ limit: 10 })
      await at(59_000)
      expect(await admitted(store, 10, 'a', ten)).toEqual(yes(10))
      await at(61_000)
      expect(await admitted(store, 10, 'a', ten)).toEqual(no(10))
    })

    it('tells the wait after which the same hit passes, for every cost', async () => {
      const ten = policy({ limit: 10 })
      for (const [millis, cost] of [
        [0, 4],
        [10_000, 3],
        [20_000, 3],
      ] as const) {
        await at(millis)
        await hit(store, 'a', ten, cost)
      }
      await at(30_000)
      const waits = []
      for (const cost of [1, 4, 5, 7, 8, 10]) waits.push((await hit(store, 'a', ten, cost)).retryMicros / 1e6)
      expect(waits).toEqual([30, 30, 40, 40, 50, 50])
    })

    it('admits a client that waits exactly as long as it was told (hazard 124)', async () => {
      let millis = 0
      const five = policy({ limit: 5, windowSeconds: 7 })
      for (let round = 0; round < 30; round += 1) {
        await at(millis)
        const reading = await hit(store, 'a', five, 1 + (round % 3))
        if (!reading.denied) {
          millis += 100
          continue
        }
        await at(millis + Math.floor(reading.retryMicros / 1000) - 1)
        expect((await hit(store, 'a', five, 1 + (round % 3))).denied).toBe(true)
        millis += Math.ceil(reading.retryMicros / 1000)
        await at(millis)
        expect((await hit(store, 'a', five, 1 + (round % 3))).denied).toBe(false)
      }
    })

    it('counts what a hit costs, and leaves what a denied one would have taken', async () => {
      const ten = policy({ limit: 10 })
      expect((await hit(store, 'a', ten, 7)).denied).toBe(false)
      const second = await hit(store, 'a', ten, 7)
      expect([second.denied, ten.limit - second.used]).toEqual([true, 3])
      expect((await hit(store, 'a', ten, 3)).denied).toBe(false)
    })

    it('keeps more windows of one key than it remembers apart, as they begin to empty', async () => {
      const seconds = [1, 2, 3, 4, 5, 6, 7]
      const policies = seconds.map((windowSeconds) => policy({ windowSeconds, keepSeconds: 7, limit: 1000 }))
      const charges = policies.map((by) => charge('a', by))
      const counted: number[] = []
      for (let millis = 0; millis <= 20_000; millis += 700) {
        await at(millis)
        const [verdict] = await decide(store, [{ charges, cost: 1 }])
        counted.push(millis)
        const inside = seconds.map((each) => counted.filter((ts) => ts > millis - each * 1000).length)
        expect(verdict?.readings.map(({ used }) => used)).toEqual(inside)
        const peeked = await store.peek(charges, new AbortController().signal)
        expect(peeked.map(({ used }) => used)).toEqual(inside)
      }
    })

    it('keeps two policies of different windows on one key exact', async () => {
      const short = policy({ limit: 2, windowSeconds: 1 })
      const long = policy({ limit: 5, windowSeconds: 100 })
      const seen: string[] = []
      for (let second = 0; second < 8; second += 2) {
        await at(second * 1000)
        // Both look at one log: what the short one admits counts for the long one too.
        for (const by of [short, long]) seen.push((await hit(store, 'a', by)).denied ? 'denied' : 'admitted')
      }
      expect(seen.join(' ')).toBe('admitted admitted admitted admitted admitted denied admitted denied')
      expect((await peek(store, 'a', long)).used).toBe(6)
      expect((await peek(store, 'a', short)).used).toBe(1)
    })

    it('tells two hundred hits of different costs no wait that is too short', async () => {
      const many = policy({ limit: 1000 })
      for (let second = 0; second < 50; second += 1) {
        await at(second * 1000)
        await hit(store, 'a', many, 20)
      }
      await at(55_000)
      const verdicts = await decide(
        store,
        Array.from({ length: 200 }, (_, i) => hitOn('a', many, 100 + i)),
      )
      for (const [i, verdict] of verdicts.entries()) {
        const enough = Math.ceil((100 + i) / 20) - 1 + 60 - 55
        expect(verdict.readings[0]?.retryMicros).toBeGreaterThanOrEqual(enough * 1e6)
      }
      expect(verdicts[0]?.readings[0]?.retryMicros).toBe(9_000_000)
    })

    it('counts on as before when the sum of all that a key ever counted goes round', async () => {
      const ten = policy({ limit: 10, windowSeconds: 60 })
      const old = policy({ limit: TOTALS_GO_ROUND_AT, windowSeconds: 60 })
      await hit(store, 'old', old, TOTALS_GO_ROUND_AT - 7)
      await at(61_000)
      const given: { at: number; cost: number; key: string }[] = []
      // Beyond the round is the third event, or the fourth; one of them begins before it.
      for (let i = 0; i < 30; i += 1) {
        await at(61_000 + i * 5000)
        const cost = 1 + (i % 3)
        const readings = []
        for (const key of ['old', 'young']) {
          const reading = await hit(store, key, ten, cost)
          if (!reading.denied) given.push({ at: reading.at, cost, key })
          const further = await hit(store, key, ten, 10)
          const states = [reading, further, await peek(store, key, ten)]
          readings.push(states.map(({ denied, used, retryMicros }) => ({ denied, used, retryMicros })))
        }
        expect([i, readings[0]]).toEqual([i, readings[1]])
        if (i % 4 !== 3) continue
        // One from before the round, later one from behind it.
        for (const { at, cost, key } of given.splice(-4, 2))
          await store.refund([{ ...charge(key, ten), cost, at }], new AbortController().signal)
      }
      expect(given.length).toBeGreaterThan(20)
    })

    it('stays exact when the limit is lowered and raised between hits (hazard 138)', async () => {
      await admitted(store, 8, 'a', policy({ limit: 10 }))
      const lowered = await hit(store, 'a', policy({ limit: 5 }))
      expect([lowered.denied, lowered.used]).toEqual([true, 8])
      expect(await admitted(store, 13, 'a', policy({ limit: 20 }))).toEqual([...yes(12), ...no(1)])
    })

    it('reopens nothing when the clock steps back', async () => {
      await at(60_000)
      expect(await admitted(store, 3, 'a', policy())).toEqual(yes(3))
      await at(50_000)
      expect(await admitted(store, 2, 'a', policy())).toEqual(no(2))
      await at(119_000)
      expect(await admitted(store, 2, 'a', policy())).toEqual(no(2))
      await at(121_000)
      expect(await admitted(store, 4, 'a', policy())).toEqual([...yes(3), ...no(1)])
    })

    it('holds windows from a millisecond to a year', async () => {
      const tiny = policy({ name: 'tiny', limit: 1, windowSeconds: 0.001 })
      const year = policy({ name: 'year', limit: 1, windowSeconds: 31_536_000 })
      expect(await admitted(store, 1, 'a', year)).toEqual(yes(1))
      for (let millis = 0; millis < 5; millis += 1) {
        await at(millis)
        expect((await hit(store, 'a', tiny)).denied).toBe(false)
      }
      await at(31_535_999_000)
      expect((await hit(store, 'a', year)).denied).toBe(true)
      await at(31_536_001_000)
      expect((await hit(store, 'a', year)).denied).toBe(false)
    })
  })

  describe('a fixed window', () => {
    const fixed = policy({ algorithm: 'fixed-window' })

    it('begins at multiples of its length and starts anew with each (seed: window truncation)', async () => {
      await at(59_000)
      const readings = [await hit(store, 'a', fixed), await hit(store, 'a', fixed)]
      expect(readings.map(({ used, resetMicros }) => [used, resetMicros])).toEqual([
        [1, 1_000_000],
        [2, 1_000_000],
      ])
      await at(60_000)
      expect((await hit(store, 'a', fixed)).used).toBe(1)
    })

    it('counts attempts, denied ones too (seed: the check fires after the increment)', async () => {
      const readings = []
      for (let i = 0; i < 5; i += 1) readings.push(await hit(store, 'a', fixed))
      expect(readings.map(({ used, denied }) => [used, denied])).toEqual([
        [1, false],
        [2, false],
        [3, false],
        [4, true],
        [5, true],
      ])
    })

    it('tells the time until the window ends (seed: Retry-After is the end minus now)', async () => {
      await at(18_000)
      for (let i = 0; i < 3; i += 1) await hit(store, 'a', fixed)
      expect((await hit(store, 'a', fixed)).retryMicros).toBe(42_000_000)
    })

    it('admits exactly the limit in every window (hazard 123)', async () => {
      for (let window = 0; window < 5; window += 1) {
        await at(window * 60_000 + 30_000)
        expect(await admitted(store, 5, 'a', fixed)).toEqual([...yes(3), ...no(2)])
      }
    })

    it('counts attempts that were refused from memory, in the window they belong to and in no other', async () => {
      await hit(store, 'a', fixed)
      const refusal = { ...charge('a', fixed), attempts: 4, windowStart: START * 1000, seen: 1 }
      await decide(store, [], [refusal])
      expect((await peek(store, 'a', fixed)).used).toBe(5)
      await at(60_000)
      await decide(store, [hitOn('a', fixed)], [refusal])
      expect((await peek(store, 'a', fixed)).used).toBe(1)
    })

    it('counts no refusals into a window that was reset since', async () => {
      for (let i = 0; i < 4; i += 1) await hit(store, 'a', fixed)
      await store.reset([charge('a', fixed).key])
      await decide(store, [], [{ ...charge('a', fixed), attempts: 40, windowStart: START * 1000, seen: 4 }])
      expect((await hit(store, 'a', fixed)).used).toBe(1)
    })

    it('stays exact however much is attempted', async () => {
      const most = 1_000_000_000_000
      for (let i = 0; i < 20; i += 1)
        await decide(
          store,
          Array.from({ length: 500 }, () => hitOn('a', fixed, most)),
        )
      const reading = await hit(store, 'a', fixed)
      expect([reading.denied, reading.used]).toEqual([true, most + 3])
      await at(60_000)
      expect((await hit(store, 'a', fixed)).used).toBe(1)
    })

    it('keeps windows of different lengths apart', async () => {
      const hour = policy({ algorithm: 'fixed-window', windowSeconds: 3600, limit: 5 })
      expect(await admitted(store, 4, 'a', fixed)).toEqual([...yes(3), ...no(1)])
      expect(await admitted(store, 6, 'a', hour)).toEqual([...yes(5), ...no(1)])
      await at(60_000)
      expect(await admitted(store, 1, 'a', fixed)).toEqual(yes(1))
      expect(await admitted(store, 1, 'a', hour)).toEqual(no(1))
    })
  })

  describe('a batch', () => {
    it('decides its hits in order, each as if alone', async () => {
      const ten = policy({ limit: 10 })
      const costs = [6, 5, 4, 1]
      const verdicts = await decide(
        store,
        costs.map((cost) => hitOn('a', ten, cost)),
      )
      expect(verdicts.map(({ allowed }) => allowed)).toEqual([true, false, true, false])
      expect(verdicts.map(({ readings }) => readings[0]?.used)).toEqual([6, 6, 10, 10])
    })

    it('charges all keys of a hit or none of them (hazard 130)', async () => {
      const a = policy({ name: 'a', limit: 10 })
      const b = policy({ name: 'b', limit: 0 })
      for (let i = 0; i < 20; i += 1) {
        const [verdict] = await decide(store, [{ charges: [charge('k', a), charge('k', b)], cost: 1 }])
        expect(verdict?.allowed).toBe(false)
        expect(verdict?.readings.map(({ denied }) => denied)).toEqual([false, true])
      }
      expect((await peek(store, 'k', a)).used).toBe(0)
    })

    it('charges all keys of a hit that passes', async () => {
      const a = policy({ name: 'a', limit: 10 })
      const b = policy({ name: 'b', limit: 2, algorithm: 'fixed-window' })
      const both = { charges: [charge('k', a), charge('k', b)], cost: 1 }
      const verdicts = await decide(store, [both, both, both, both])
      expect(verdicts.map(({ allowed }) => allowed)).toEqual([true, true, false, false])
      expect((await peek(store, 'k', a)).used).toBe(2)
      // Attempts: the two that were admitted, and the two that this window denied.
      expect((await peek(store, 'k', b)).used).toBe(4)
    })

    it('charges a key once when two policies of one hit look at it', async () => {
      const second = policy({ limit: 10, windowSeconds: 1 })
      const minute = policy({ limit: 2, windowSeconds: 60 })
      const both = { charges: [charge('k', second), charge('k', minute)], cost: 1 }
      const verdicts = await decide(store, [both, both, both])
      expect(verdicts.map(({ allowed }) => allowed)).toEqual([true, true, false])
      expect((await peek(store, 'k', second)).used).toBe(2)
    })

    it('takes hundreds of hits on hundreds of keys at once', async () => {
      const hits = Array.from({ length: 500 }, (_, i) => hitOn(`key ${i % 120}`, policy()))
      const verdicts = await decide(store, hits)
      // 500 hits: 20 keys get five, 100 keys get four; three of each pass.
      expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(360)
    })

    it('answers nothing when there is nothing to decide', async () => {
      expect(await decide(store, [])).toEqual([])
    })
  })

  describe('limits at the edge', () => {
    it.each(['sliding-window', 'fixed-window'] as const)(
      'denies everything at limit 0 (%s)',
      async (algorithm) => {
        const none = policy({ limit: 0, algorithm })
        const reading = await hit(store, 'a', none)
        expect([reading.denied, reading.retryMicros]).toEqual([true, Number.POSITIVE_INFINITY])
      },
    )

    it('says that a cost above the limit can never pass', async () => {
      const reading = await hit(store, 'a', policy({ limit: 3 }), 4)
      expect([reading.denied, reading.retryMicros, reading.used]).toEqual([true, Number.POSITIVE_INFINITY, 0])
    })

    it('counts as high as a trillion', async () => {
      const most = policy({ limit: 1_000_000_000_000 })
      expect((await hit(store, 'a', most, 999_999_999_999)).denied).toBe(false)
      expect((await hit(store, 'a', most, 1)).used).toBe(1_000_000_000_000)
      expect((await hit(store, 'a', most, 1)).denied).toBe(true)
    })
  })

  it('keeps keys apart that only differ in case, accents, blanks, NUL, emoji or length (hazards 34 to 38)', async () => {
    const keys = [
      'api:Ab',
      'api:aB',
      'api:\u00e1b',
      'api:a\u0301b',
      'api:😀',
      'api:😁',
      'a',
      'a ',
      'a\0',
      'a\u200b',
    ]
    keys.push('ß', 'ss', '日本', '中国')
    const long = 'x'.repeat(10_000)
    keys.push(
      `${long}1`,
      `${long}2`,
      '__proto__',
      'constructor',
      '\ud800',
      '\ud801',
      "' or 1=1 -- ",
      '\\',
      '?',
      '"',
    )
    for (const key of keys) await hit(store, key, policy())
    const counts = []
    for (const key of keys) counts.push((await peek(store, key, policy())).used)
    expect(counts).toEqual(keys.map(() => 1))
  })

  describe('peek', () => {
    it('counts nothing, on a key that is used and on one that is not', async () => {
      for (const by of [policy(), policy({ algorithm: 'fixed-window' })]) {
        await hit(store, 'a', by)
        const before = await subject.size()
        for (let i = 0; i < 3; i += 1) {
          expect((await peek(store, 'a', by)).used).toBe(1)
          expect((await peek(store, 'nobody', by)).used).toBe(0)
        }
        expect(await subject.size()).toEqual(before)
      }
    })

    it('tells whether a hit would pass, and if not, when', async () => {
      await at(10_000)
      await admitted(store, 3, 'a', policy())
      await at(20_000)
      const reading = await peek(store, 'a', policy())
      expect([reading.denied, Math.ceil(reading.retryMicros / 1e6)]).toEqual([true, 50])
      expect((await peek(store, 'b', policy())).denied).toBe(false)
    })
  })

  it('forgets a key that is reset, and no other', async () => {
    for (const by of [policy(), policy({ algorithm: 'fixed-window' })]) {
      for (const key of ['a', 'b']) await admitted(store, 3, key, by)
      await store.reset([charge('a', by).key, charge('never used', by).key])
      expect((await peek(store, 'a', by)).used).toBe(0)
      expect(await admitted(store, 1, 'a', by)).toEqual(yes(1))
      expect(await admitted(store, 1, 'b', by)).toEqual(no(1))
    }
  })

  describe('a probe', () => {
    it('passes when the store could decide, and leaves nothing behind', async () => {
      await hit(store, 'a', policy())
      const before = await subject.size()
      for (let i = 0; i < 3; i += 1) await store.probe(new AbortController().signal)
      await Promise.all([1, 2].map(() => store.probe(new AbortController().signal)))
      expect(await subject.size()).toEqual(before)
      expect((await peek(store, 'a', policy())).used).toBe(1)
    })

    it('of some keys passes when nobody has them locked, whether they are there or not', async () => {
      await hit(store, 'a', policy())
      const before = await subject.size()
      await store.probe(
        new AbortController().signal,
        ['new', 'a', 'b', 'a'].map((key) => charge(key, policy()).key),
      )
      expect(await subject.size()).toEqual(before)
    })

    it('gives up with the reason of its signal', async () => {
      const reason = new Error('enough')
      await expect(store.probe(AbortSignal.abort(reason))).rejects.toBe(reason)
    })

    it('says that the store is closed', async () => {
      await store.close()
      await expect(store.probe(new AbortController().signal)).rejects.toMatchObject({
        code: 'ERR_STORE_CLOSED',
      })
    })
  })

  describe('nothing grows for ever', () => {
    it('deletes expired events of a key in its own unit (seed: prune on the way through)', async () => {
      const many = policy({ limit: 100 })
      for (let i = 0; i < 50; i += 1) await hit(store, 'a', many)
      await at(70_000)
      await hit(store, 'a', many)
      await hit(store, 'a', many)
      expect((await subject.size()).events).toBeLessThanOrEqual(2)
    })

    it('keeps the events of a busy key within an eighth of its window', async () => {
      const busy = policy({ limit: 1000, windowSeconds: 10 })
      for (let millis = 0; millis < 60_000; millis += 250) {
        await at(millis)
        await hit(store, 'a', busy)
      }
      // 40 events are inside the window at any time.
      expect((await subject.size()).events).toBeLessThanOrEqual(40 * (1 + 1 / 8) + 2)
    })

    it('lists the keys that begin with a text, however many, each once, and locks none', async () => {
      const names = Array.from({ length: 1_100 }, (_, i) => `api:${i}`)
      const others = ['api', 'api;', 'ap:1', 'apj:1', 'API:1', 'api~1']
      const stored = (key: string) => ({ charges: [{ key, policy: policy() }], cost: 1 })
      await decide(store, [...names, ...others].map(stored))
      const listed: string[] = []
      for await (const keys of store.storedKeys?.('api:') ?? []) {
        listed.push(...keys)
        const [verdict] = await decide(store, [stored(keys.at(-1) as string)])
        expect(verdict?.allowed).toBe(true)
      }
      expect(listed.sort()).toEqual(names.sort())
    })

    it('sweeps abandoned keys, and leaves those that still count (hazard 14)', async () => {
      const hits = Array.from({ length: 500 }, (_, i) => hitOn(`scanner ${i}`, policy()))
      await decide(store, hits)
      await at(150_000)
      await hit(store, 'alive', policy())
      await at(200_000)
      expect(await store.sweep()).toEqual({ keys: 500, events: 500, ran: true })
      expect(await subject.size()).toEqual({ keys: 1, events: 1 })
      expect((await peek(store, 'alive', policy())).used).toBe(1)
    })

    it('sweeps also after the clock has stepped back further than a sweep takes', async () => {
      await at(600_000)
      expect((await store.sweep()).ran).toBe(true)
      await hit(store, 'a', policy())
      await at(0)
      expect((await store.sweep()).ran).toBe(true)
    })

    it('sweeps a key with many events in several steps', async () => {
      const many = policy({ limit: 10_000 })
      for (let i = 0; i < 1_200; i += 1) await hit(store, 'a', many)
      await at(200_000)
      expect(await store.sweep()).toEqual({ keys: 1, events: 1_200, ran: true })
      expect(await subject.size()).toEqual({ keys: 0, events: 0 })
    })

    it('publishes what a sweep removed, and how long it took', async () => {
      const messages: unknown[] = []
      // Other stores of this process sweep too, in the background.
      const listen = (message: unknown): void => {
        if ((message as { store: unknown }).store === store) messages.push(message)
      }
      await admitted(store, 3, 'abandoned', policy())
      await at(600_000)
      subscribe('express-sql-rate-limit:sweep', listen)
      try {
        const { keys, events } = await store.sweep()
        expect(messages).toEqual([{ store, rows: keys + events, milliseconds: expect.any(Number) }])
      } finally {
        unsubscribe('express-sql-rate-limit:sweep', listen)
      }
    })

    it('tells how many rows it has, and when it was last swept', async () => {
      expect(await inspect(store)).toMatchObject({ keys: 0, events: 0, precision: 'exact', sweptAt: null })
      await admitted(store, 3, 'a', policy())
      await admitted(store, 1, 'b', policy())
      expect(await inspect(store)).toMatchObject({ keys: 2, events: 4, precision: 'exact', sweptAt: null })
      await at(600_000)
      await store.sweep()
      const { sweptAt, ...rest } = await inspect(store)
      expect(rest).toMatchObject({ keys: 0, events: 0, precision: 'exact' })
      // The database's clock goes on while it is asked.
      expect(sweptAt).toBeGreaterThanOrEqual(START + 600_000)
      expect(sweptAt).toBeLessThan(START + 660_000)
    })

    it('counts no more than ten thousand rows when it is asked how many there are', async () => {
      for (let i = 0; i < 11_000; i += 500) {
        const hits = Array.from({ length: 500 }, (_, j) => hitOn(`key ${i + j}`, policy()))
        await decide(store, hits)
      }
      const { keys, precision } = await inspect(store)
      if (precision === 'exact') expect(keys).toBe(11_000)
      else if (precision === 'at-least') expect(keys).toBe(10_000)
      else {
        // Statistics of a table that has just grown lag behind.
        expect(keys).toBeGreaterThan(10_000)
        expect(keys).toBeLessThan(20_000)
      }
    })

    it('sweeps counters of fixed windows too (seed: pruneExpired)', async () => {
      await admitted(store, 5, 'a', policy({ algorithm: 'fixed-window' }))
      await at(150_000)
      expect((await store.sweep()).keys).toBe(1)
      expect(await subject.size()).toEqual({ keys: 0, events: 0 })
    })
  })

  describe('the audit log', () => {
    it('keeps admitted events past their window for as long as it is told', async () => {
      const kept = policy({ limit: 3, retainSeconds: 600 })
      await admitted(store, 5, 'a', kept)
      await at(300_000)
      expect(await admitted(store, 5, 'a', kept)).toEqual([...yes(3), ...no(2)])
      await store.sweep()
      expect((await subject.size()).events).toBe(6)
      await at(2_000_000)
      await store.sweep()
      expect(await subject.size()).toEqual({ keys: 0, events: 0 })
    })

    it('records the admitted hits of a fixed window when it is told to (seed: api_calls)', async () => {
      await admitted(store, 5, 'quiet', policy({ algorithm: 'fixed-window' }))
      expect((await subject.size()).events).toBe(0)
      await admitted(
        store,
        5,
        'audited',
        policy({ algorithm: 'fixed-window', audit: true, retainSeconds: 600 }),
      )
      expect((await subject.size()).events).toBe(3)
    })

    it('does not let the log of a busy fixed window grow past its retention', async () => {
      const audited = policy({
        algorithm: 'fixed-window',
        audit: true,
        retainSeconds: 10,
        windowSeconds: 10,
        limit: 100,
      })
      for (let second = 0; second < 200; second += 1) {
        await at(second * 1000)
        await hit(store, 'a', audited)
      }
      expect((await subject.size()).events).toBeLessThanOrEqual(25)
    })
  })

  it('gives up at once when its signal has aborted', async () => {
    const reason = new StoreError('ERR_STORE_TIMEOUT', 'too late')
    const aborted = AbortSignal.abort(reason)
    await expect(store.decide({ hits: [hitOn('a', policy())], refusals: [] }, aborted)).rejects.toBe(reason)
    expect((await peek(store, 'a', policy())).used).toBe(0)
  })

  it('refuses work after it was closed, and may be closed twice', async () => {
    await store.close()
    await store.close()
    await expect(hit(store, 'a', policy())).rejects.toMatchObject({ code: 'ERR_STORE_CLOSED' })
    await expect(peek(store, 'a', policy())).rejects.toMatchObject({ code: 'ERR_STORE_CLOSED' })
  })
}
