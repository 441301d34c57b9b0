import { MemoryStore } from '../../lib/stores/memory-store.js'
import type { Store } from '../../lib/stores/store.js'
import { admitted, charge, decide, hit, hitOn, peek, policy } from './policies.js'
import { type OpenSubject, START, type Subject } from './subject.js'

/** What every store must do when hits are given back, forced, or a key is blocked. */
export function correctionsContract(open: OpenSubject): void {
  let subject: Subject
  let store: Store
  const at = (millis: number): Promise<void> => subject.setClock(START + millis)
  const signal = (): AbortSignal => new AbortController().signal
  const used = async (by = policy(), key = 'a'): Promise<number> => (await peek(store, key, by)).used

  beforeEach(async () => {
    subject = await open()
    store = subject.store
    await store.install()
    await at(0)
  })
  afterEach(() => subject.close())

  describe('a refund', () => {
    it('gives back exactly the hit that was taken, and its time with it', async () => {
      const ten = policy({ limit: 10 })
      const first = await hit(store, 'a', ten, 4)
      await at(10_000)
      const second = await hit(store, 'a', ten, 3)
      await at(20_000)
      await hit(store, 'a', ten, 2)
      await store.refund([{ ...charge('a', ten), cost: 3, at: second.at }], signal())
      expect(await used(ten)).toBe(6)
      await at(60_001)
      expect(await used(ten)).toBe(2)
      await store.refund([{ ...charge('a', ten), cost: 4, at: first.at }], signal())
      expect(await used(ten)).toBe(2)
      await at(80_001)
      expect(await used(ten)).toBe(0)
    })

    it('of one hit leaves the others of its batch', async () => {
      const [first] = await decide(store, [hitOn('a', policy(), 1), hitOn('a', policy(), 1)])
      await store.refund(
        [{ ...charge('a', policy()), cost: 1, at: first?.readings[0]?.at as number }],
        signal(),
      )
      expect(await used()).toBe(1)
      expect(await admitted(store, 3, 'a', policy())).toEqual([true, true, false])
    })

    it('of the first event of the window moves the wait to the next one', async () => {
      const two = policy({ limit: 2 })
      const first = await hit(store, 'a', two)
      await at(10_000)
      await hit(store, 'a', two)
      await store.refund([{ ...charge('a', two), cost: 1, at: first.at }], signal())
      await at(20_000)
      await hit(store, 'a', two)
      expect(Math.round((await hit(store, 'a', two)).retryMicros / 1e6)).toBe(50)
    })

    it('never goes below zero, creates nothing, and touches nothing that was reset (hazard 120)', async () => {
      const one = await hit(store, 'a', policy())
      const back = { ...charge('a', policy()), cost: 1, at: one.at }
      await store.refund([back, back, back], signal())
      await store.refund([{ ...charge('never', policy()), cost: 1, at: one.at }], signal())
      expect(await used()).toBe(0)
      await store.reset([charge('a', policy()).key])
      await at(1000)
      await hit(store, 'a', policy())
      await store.refund([back], signal())
      expect(await used()).toBe(1)
    })

    it('of many hits at once gives back each one, in whatever order they come', async () => {
      const many = policy({ limit: 100 })
      const taken: { cost: number; at: number }[] = []
      for (let i = 0; i < 12; i += 1) {
        await at(i * 4000)
        taken.push({ cost: i + 1, at: (await hit(store, 'a', many, i + 1)).at })
      }
      const back = ({ cost, at }: { cost: number; at: number }) => ({ ...charge('a', many), cost, at })
      const given = [9, 2, 5, 0].map((i) => back(taken[i] as { cost: number; at: number }))
      // Half of one, and more than what is left of it.
      const half = { ...back(taken[6] as { cost: number; at: number }), cost: 4 }
      await store.refund([...given, half, half], signal())
      expect(await used(many)).toBe(78 - 10 - 3 - 6 - 1 - 4)
      // What is left leaves as it came: after each step only events later than a window ago.
      const left = [0, 2, 0, 4, 5, 0, 3, 8, 9, 0, 11, 12]
      for (let i = 0; i < 12; i += 1) {
        await at(60_001 + i * 4000)
        expect([i, await used(many)]).toEqual([i, left.slice(i + 1).reduce((sum, each) => sum + each, 0)])
      }
    })

    it('of a hit far back is left for a call without other keys, unless the store writes it in no time', async () => {
      const many = policy({ limit: 1000 })
      const old = await hit(store, 'a', many)
      const oldToo = await hit(store, 'b', many)
      for (let i = 0; i < 120; i += 1) await hit(store, 'a', many)
      const near = await hit(store, 'a', many)
      const back = (key: string, at: number) => ({ ...charge(key, many), cost: 1, at })
      const refunds = [back('a', old.at), back('a', near.at), back('b', oldToo.at)]
      const far = store instanceof MemoryStore ? [] : [refunds[0]]
      const left = await store.refund(refunds, signal())
      expect(left).toEqual(far)
      expect(await used(many, 'b')).toBe(0)
      expect(await used(many)).toBe(120 + far.length)
      expect(await store.refund(left, signal())).toEqual([])
      expect(await used(many)).toBe(120)
    })

    it('of a fixed window takes nothing from what was counted after a reset', async () => {
      const fixed = policy({ algorithm: 'fixed-window' })
      const first = await hit(store, 'a', fixed)
      await store.reset([charge('a', fixed).key])
      await at(1000)
      await hit(store, 'a', fixed)
      await store.refund([{ ...charge('a', fixed), cost: 1, at: first.at }], signal())
      expect(await used(fixed)).toBe(1)
    })

    it('of a fixed window counts in that window and in no other (hazard 120)', async () => {
      const fixed = policy({ algorithm: 'fixed-window' })
      const first = await hit(store, 'a', fixed)
      await hit(store, 'a', fixed)
      const back = { ...charge('a', fixed), cost: 1, at: first.at }
      await store.refund([back], signal())
      expect(await used(fixed)).toBe(1)
      await at(60_000)
      expect(await admitted(store, 3, 'a', fixed)).toEqual([true, true, true])
      await store.refund([back], signal())
      expect(await admitted(store, 1, 'a', fixed)).toEqual([false])
    })
  })

  it('counts no more than a trillion beyond the limit, however many hits are forced', async () => {
    const trillion = 1_000_000_000_000
    for (const [i, algorithm] of (['sliding-window', 'fixed-window'] as const).entries()) {
      await at(i * 120_000)
      const by = policy({ algorithm, limit: trillion })
      const forced = { ...hitOn('a', by, trillion), force: true }
      const verdicts = await decide(store, Array(10_000).fill(forced))
      expect(verdicts.every(({ allowed }) => allowed)).toBe(true)
      expect(await used(by)).toBe(2 * trillion)
      await at(i * 120_000 + 60_001)
      expect((await hit(store, 'a', by, trillion)).denied).toBe(false)
    }
  })

  it('counts a forced hit over the limit, and the wait grows with it', async () => {
    for (const algorithm of ['sliding-window', 'fixed-window'] as const) {
      const by = policy({ algorithm, limit: 3 })
      const [verdict] = await decide(store, [{ ...hitOn('a', by, 5), force: true }])
      expect(verdict?.allowed).toBe(true)
      expect(await used(by)).toBe(5)
      expect((await hit(store, 'a', by)).denied).toBe(true)
    }
  })

  describe('a block', () => {
    it.each(['sliding-window', 'fixed-window'] as const)(
      'denies everything until it ends (%s)',
      async (algorithm) => {
        const by = policy({ algorithm, limit: 100 })
        await hit(store, 'a', by)
        await store.block(charge('a', by), 90_000_000, signal())
        await at(30_000)
        const reading = await hit(store, 'a', by)
        expect([reading.denied, reading.retryMicros]).toEqual([true, 60_000_000])
        expect((await peek(store, 'a', by)).denied).toBe(true)
        expect((await hit(store, 'b', by)).denied).toBe(false)
        await at(90_000)
        expect((await hit(store, 'a', by)).denied).toBe(false)
      },
    )

    it('is not shortened by a shorter one, survives a sweep, and ends with a reset (hazard 157)', async () => {
      await store.block(charge('a', policy()), 600_000_000, signal())
      await store.block(charge('a', policy()), 1_000_000, signal())
      await at(300_000)
      await store.sweep()
      expect((await hit(store, 'a', policy())).retryMicros).toBe(300_000_000)
      await store.reset([charge('a', policy()).key])
      expect((await hit(store, 'a', policy())).denied).toBe(false)
      await at(700_000)
      await store.sweep()
      expect(await subject.size()).toEqual({ keys: 0, events: 0 })
    })
  })
}
