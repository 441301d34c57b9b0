import fc from 'fast-check'
import type { Refund, Store, Verdict } from '../../lib/stores/store.js'
import { admitted, charge, decide, hit, hitOn, peek, policy } from './policies.js'
import { type OpenSubject, START, type Subject } from './subject.js'

/** What every store must do when a hit asks for more units than it costs. `runs` random schedules are tried. */
export function leaseContract(open: OpenSubject, runs: number): void {
  let subject: Subject
  let store: Store
  const at = (millis: number): Promise<void> => subject.setClock(START + millis)
  const hundred = policy({ limit: 100, windowSeconds: 10 })
  const fixed = policy({ limit: 100, windowSeconds: 10, algorithm: 'fixed-window' })

  beforeEach(async () => {
    subject = await open()
    store = subject.store
    await store.install()
    await at(0)
  })
  afterEach(() => subject.close())

  /** Asks for units that may be used for a second. */
  async function ask(units: number, by = hundred, cost = 1, micros = 1_000_000): Promise<Verdict> {
    const [verdict] = await decide(store, [{ ...hitOn('a', by, cost), lease: { units, micros } }])
    return verdict as Verdict
  }

  async function giveBack(verdict: Verdict, cost: number, by = hundred): Promise<void> {
    const at = verdict.readings[0]?.at as number
    await store.refund([{ ...charge('a', by), cost, at }], new AbortController().signal)
  }

  describe.each([
    ['a sliding window', hundred],
    ['a fixed window', fixed],
  ])('a lease of %s', (_, by) => {
    it('grants as many units as fit, at most those asked for', async () => {
      const granted = []
      for (const units of [60, 30, 30]) granted.push((await ask(units, by)).granted)
      expect(granted).toEqual([60, 30, 10])
      expect((await peek(store, 'a', by)).used).toBe(100)
    })

    it('is denied as the hit alone would be, and nothing is granted', async () => {
      await hit(store, 'a', by, 98)
      const { allowed, granted } = await ask(30, by, 3)
      expect([allowed, granted]).toEqual([false, undefined])
      expect(await ask(30, policy({ ...by, limit: 1000 }))).toMatchObject({ allowed: true, granted: 30 })
    })

    it('grants a hit its cost, where that is more than the units asked for', async () => {
      expect(await ask(3, by, 7)).toMatchObject({ allowed: true, granted: 7 })
    })

    it('that is not used leaves the count when it is given back', async () => {
      const lease = await ask(60, by)
      await giveBack(lease, 59, by)
      expect((await peek(store, 'a', by)).used).toBe(1)
      expect((await hit(store, 'a', by, 99)).denied).toBe(false)
    })

    it('gives back no more than is left of it', async () => {
      const lease = await ask(60, by)
      await giveBack(lease, 59, by)
      if (by === hundred) await giveBack(lease, 59, by)
      expect((await peek(store, 'a', by)).used).toBe(1)
    })

    it('ends with a reset', async () => {
      await ask(100, by)
      await store.reset([charge('a', by).key])
      expect(await admitted(store, 2, 'a', by, 50)).toEqual([true, true])
    })

    it('meets a block', async () => {
      await ask(10, by)
      await store.block(charge('a', by), 60_000_000, new AbortController().signal)
      expect((await ask(10, by)).allowed).toBe(false)
    })
  })

  it('is stored as of its end', async () => {
    await at(500)
    const { readings } = await ask(60)
    expect(readings[0]?.at).toBe((START + 1500) * 1000)
  })

  it('counts from its beginning until a window after its end', async () => {
    await ask(100)
    await at(1)
    expect((await hit(store, 'a', hundred)).denied).toBe(true)
    await at(10_999)
    expect((await hit(store, 'a', hundred)).denied).toBe(true)
    await at(11_000)
    expect(await admitted(store, 2, 'a', hundred, 50)).toEqual([true, true])
  })

  it('tells a wait after which the same hit passes, and not before', async () => {
    await ask(60)
    await at(100)
    await hit(store, 'a', hundred, 40)
    for (const cost of [1, 60, 61, 100]) {
      await at(5000)
      const { denied, retryMicros } = await hit(store, 'a', hundred, cost)
      expect(denied).toBe(true)
      await at(5000 + Math.floor(retryMicros / 1000) - 1)
      expect(await peek(store, 'a', policy({ ...hundred, limit: 101 - cost }))).toMatchObject({
        denied: true,
      })
      await at(5000 + Math.ceil(retryMicros / 1000))
      expect(await peek(store, 'a', policy({ ...hundred, limit: 101 - cost }))).toMatchObject({
        denied: false,
      })
    }
  })

  it('of a fixed window counts in that window and in no other', async () => {
    await at(9_900)
    await ask(100, fixed)
    expect((await hit(store, 'a', fixed)).denied).toBe(true)
    await at(10_000)
    expect((await hit(store, 'a', fixed, 100)).denied).toBe(false)
  })

  it('leaves the clock of its key where it is', async () => {
    const short = policy({ limit: 5, windowSeconds: 0.2 })
    await ask(3, short)
    // The lease ended at 1000 and counts until 1200: from there on each short window has its own five.
    for (let millis = 2000; millis < 4000; millis += 250) {
      await at(millis)
      expect(await admitted(store, 6, 'a', short)).toEqual([true, true, true, true, true, false])
    }
  })

  it('is not swept while it counts, and is pruned when it does not', async () => {
    await ask(100)
    await at(10_900)
    await store.sweep()
    expect((await hit(store, 'a', hundred)).denied).toBe(true)
    await at(200_000)
    await ask(50)
    await ask(50)
    // The two of now, and no more the one of then.
    expect((await subject.size()).events).toBe(2)
    await at(400_000)
    await store.sweep()
    expect(await subject.size()).toEqual({ keys: 0, events: 0 })
  })

  it('shares a batch with other hits of its key, and of others', async () => {
    const lease = { units: 40, micros: 1_000_000 }
    const verdicts = await decide(store, [
      hitOn('a', hundred),
      { ...hitOn('a', hundred, 10), lease },
      { ...hitOn('b', hundred), lease },
      { ...hitOn('a', hundred), lease },
      hitOn('a', hundred, 20),
      hitOn('a', hundred, 19),
    ])
    expect(verdicts.map(({ granted }) => granted)).toEqual([undefined, 40, 40, 40, undefined, undefined])
    expect(verdicts.map(({ allowed }) => allowed)).toEqual([true, true, true, true, false, true])
    expect(verdicts.map(({ readings }) => readings[0]?.used)).toEqual([1, 41, 40, 81, 81, 100])
    expect((await subject.size()).events).toBe(2)
  })

  it('lets no window hold more than the limit, whenever its units are used', async () => {
    const by = policy({ name: 'w', limit: 10, windowSeconds: 1 })
    const someHit = fc.record({
      wait: fc.integer({ min: 0, max: 300 }),
      cost: fc.integer({ min: 1, max: 3 }),
      units: fc.integer({ min: 0, max: 8 }),
      /** When its further units are used: 0 is at once, 1 at the lease's end; with `back` never. */
      lateness: fc.constantFrom(0, 0.7, 1),
      back: fc.boolean(),
    })
    let round = 0
    const property = fc.asyncProperty(fc.array(someHit, { minLength: 20, maxLength: 40 }), async (hits) => {
      round += 1
      const { key } = charge(`round ${round}`, by)
      const uses: { usedAt: number; cost: number }[] = []
      const unused: Refund[] = []
      let millis = 0
      for (const { wait, cost, units, lateness, back } of hits) {
        millis += wait
        await at(millis)
        const lease = units > 0 ? { lease: { units, micros: 400_000 } } : {}
        const [verdict] = await decide(store, [{ charges: [{ key, policy: by }], cost, ...lease }])
        if (!verdict?.allowed) continue
        const now = (START + millis) * 1000
        uses.push({ usedAt: now, cost })
        const further = (verdict.granted ?? cost) - cost
        if (further === 0) continue
        if (back) unused.push({ key, policy: by, cost: further, at: verdict.readings[0]?.at as number })
        else uses.push({ usedAt: now + lateness * 400_000, cost: further })
        if (unused.length > 2) await store.refund(unused.splice(0), new AbortController().signal)
      }
      for (const { usedAt: end } of uses) {
        const inside = uses.filter(({ usedAt }) => usedAt > end - by.windowMicros && usedAt <= end)
        expect(inside.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(by.limit)
      }
    })
    await fc.assert(property, { numRuns: runs })
  }, 120_000)
}
