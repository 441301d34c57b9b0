import fc from 'fast-check'
import type { Policy, Refund, Store, UsageStore } from '../../lib/index.js'
import { SLICE_MICROS } from '../../lib/stores/kept-usage.js'
import { admitted, charge, hit, policy } from './policies.js'
import { START, type Subject } from './subject.js'

/** Opens an empty store that keeps usage. */
export type OpenKeeping = (keepUsageSeconds: Record<string, number>) => Promise<Subject>

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const YEAR_SECONDS = 31_536_000
const never = (): AbortSignal => new AbortController().signal

/** The usage of a key by quarters of an hour, from its first to its last. */
export async function usageOf(
  store: Store,
  key: string,
  micros = SLICE_MICROS,
): Promise<Map<number, number>> {
  const slices = await (store as Store & UsageStore).readUsage(key, 0, Number.MAX_SAFE_INTEGER, micros)
  const usage = new Map<number, number>()
  for (const { at, cost } of slices) usage.set(at, (usage.get(at) ?? 0) + cost)
  return new Map([...usage].sort(([a], [b]) => a - b))
}

export async function totalOf(store: Store, key: string): Promise<number> {
  return [...(await usageOf(store, key)).values()].reduce((sum, cost) => sum + cost, 0)
}

/** What a store must do that keeps usage. `runs` random schedules are tried. */
export function usageContract(open: OpenKeeping, runs: number): void {
  describe('usage', () => {
    let subject: Subject
    let store: Store
    const at = (millis: number): Promise<void> => subject.setClock(START + millis)
    const ten = policy({ limit: 10, windowSeconds: 10 })
    const key = charge('a', ten).key
    const quarters = async (): Promise<[number, number][]> =>
      [...(await usageOf(store, key))].map(([start, cost]) => [(start / 1000 - START) / (15 * MINUTE), cost])

    beforeEach(async () => {
      subject = await open({ p: YEAR_SECONDS })
      store = subject.store
      await store.install()
      await at(0)
    })
    afterEach(() => subject.close())

    it('is that of the events, while they are there', async () => {
      await hit(store, 'a', ten, 3)
      await hit(store, 'a', ten, 8)
      await at(15 * MINUTE)
      await hit(store, 'a', ten, 2)
      expect(await quarters()).toEqual([
        [0, 3],
        [1, 2],
      ])
    })

    it('stays when later hits have pruned the events', async () => {
      for (let minute = 0; minute < 40; minute += 1) {
        await at(minute * MINUTE)
        await hit(store, 'a', ten, 2)
      }
      expect((await subject.size()).events).toBeLessThan(5)
      expect(await quarters()).toEqual([
        [0, 30],
        [1, 30],
        [2, 20],
      ])
    })

    it('stays when the key was swept, and when it was reset', async () => {
      await hit(store, 'a', ten, 4)
      await at(HOUR)
      await store.sweep()
      expect(await subject.size()).toEqual({ keys: 0, events: 0 })
      expect(await quarters()).toEqual([[0, 4]])
      await hit(store, 'a', ten, 5)
      await store.reset([key])
      expect(await subject.size()).toEqual({ keys: 0, events: 0 })
      expect(await quarters()).toEqual([
        [0, 4],
        [4, 5],
      ])
    })

    it('of a key with very many events stays as well', async () => {
      for (let i = 0; i < 450; i += 1) {
        await at(i)
        await hit(store, 'a', policy({ limit: 1000, windowSeconds: 10 }))
      }
      await at(HOUR)
      await store.sweep()
      expect(await subject.size()).toEqual({ keys: 0, events: 0 })
      expect(await quarters()).toEqual([[0, 450]])
    })

    it.each<[string, Partial<Policy>]>([
      ['a sliding window', {}],
      ['a fixed window with an audit log', { algorithm: 'fixed-window', audit: true }],
    ])(
      'of %s is without what was given back before, and keeps what is given back too late',
      async (_, kind) => {
        const by = policy({ limit: 10, windowSeconds: 60, ...kind })
        const stored = charge('a', by).key
        const first = await hit(store, 'a', by, 4)
        await at(1)
        const second = await hit(store, 'a', by, 3)
        const back = (cost: number, when: number): Refund[] => [{ ...charge('a', by), cost, at: when }]
        await store.refund(back(1, first.at), never())
        expect(await totalOf(store, stored)).toBe(6)
        await store.refund(back(3, first.at), never())
        await store.refund(back(3, first.at), never())
        expect(await totalOf(store, stored)).toBe(3)
        await at(HOUR)
        await store.sweep()
        await store.refund(back(3, second.at), never())
        expect(await totalOf(store, stored)).toBe(3)
      },
    )

    it('has nothing of what was denied', async () => {
      await admitted(store, 15, 'a', ten)
      const fixed = policy({ limit: 3, algorithm: 'fixed-window', audit: true })
      await admitted(store, 15, 'a', fixed)
      expect(await totalOf(store, key)).toBe(10)
      expect(await totalOf(store, charge('a', fixed).key)).toBe(3)
    })

    it('is kept of the limits that are named, and of no other', async () => {
      const other = policy({ name: 'p2', limit: 10, windowSeconds: 10 })
      await hit(store, 'a', ten)
      await hit(store, 'a', other)
      await at(HOUR)
      await store.sweep()
      expect(await totalOf(store, key)).toBe(1)
      expect(await totalOf(store, charge('a', other).key)).toBe(0)
    })

    it('goes when it was kept for its time', async () => {
      await hit(store, 'a', ten)
      await at(HOUR)
      await store.sweep()
      await at((YEAR_SECONDS - 1) * 1000)
      await store.sweep()
      expect(await totalOf(store, key)).toBe(1)
      await at((YEAR_SECONDS + 1) * 1000)
      await store.sweep()
      expect(await totalOf(store, key)).toBe(0)
    })

    it('is told in minutes while events are there, and then in the first minute of its quarter of an hour', async () => {
      const minutes = async () =>
        [...(await usageOf(store, key, 60_000_000))].map(([start, cost]) => [
          (start / 1000 - START) / MINUTE,
          cost,
        ])
      await at(5 * MINUTE)
      await hit(store, 'a', ten)
      expect(await minutes()).toEqual([[5, 1]])
      await at(HOUR)
      await store.sweep()
      expect(await minutes()).toEqual([[0, 1]])
    })
  })

  it(
    'usage is never lost nor counted twice, whatever is deleted and when',
    () => neverLost(open, runs),
    120_000,
  )
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ key: fc.constantFrom('a', 'b'), cost: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 4, arbitrary: fc.record({ advance: fc.integer({ min: 0, max: 5 * MINUTE }) }) },
  { weight: 1, arbitrary: fc.record({ advance: fc.integer({ min: 0, max: 2 * HOUR }) }) },
  { weight: 1, arbitrary: fc.record({ refund: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ reset: fc.constantFrom('a', 'b') }) },
  { weight: 2, arbitrary: fc.constant({ sweep: true as const }) },
)

/** Random schedules: after every step the usage must be the sum of what was admitted and not given back. */
async function neverLost(open: OpenKeeping, runs: number): Promise<void> {
  const by = policy({ limit: 12, windowSeconds: 120 })
  const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
    const subject = await open({ p: YEAR_SECONDS })
    try {
      const { store } = subject
      const expected = new Map<string, Map<number, number>>()
      const add = (stored: string, ts: number, cost: number): void => {
        const usage = expected.get(stored) ?? new Map<number, number>()
        const quarter = ts - (ts % SLICE_MICROS)
        usage.set(quarter, (usage.get(quarter) ?? 0) + cost)
        if (usage.get(quarter) === 0) usage.delete(quarter)
        expected.set(stored, usage)
      }
      let taken: Refund[] = []
      let clock = START
      await subject.setClock(clock)
      for (const each of steps) {
        if ('cost' in each) {
          const reading = await hit(store, each.key, by, each.cost)
          if (reading.denied) continue
          const one = { ...charge(each.key, by), cost: each.cost, at: reading.at }
          taken.push(one)
          add(one.key, one.at, one.cost)
        } else if ('refund' in each) {
          // What is in its window is there for certain.
          taken = taken.filter((one) => one.at > (clock - 120_000) * 1000)
          const [one] = taken.splice(-1 - each.refund, 1)
          if (one === undefined) continue
          await store.refund([one], never())
          add(one.key, one.at, -one.cost)
        } else if ('reset' in each) {
          const stored = charge(each.reset, by).key
          await store.reset([stored])
          taken = taken.filter((one) => one.key !== stored)
          // Only a test stands still so long that a hit after the reset has the instant of one before it.
          clock += 1
          await subject.setClock(clock)
        } else if ('sweep' in each) await store.sweep()
        else {
          clock += each.advance
          await subject.setClock(clock)
        }
        for (const [stored, usage] of expected) expect(await usageOf(store, stored)).toEqual(usage)
      }
    } finally {
      await subject.close()
    }
  })
  await fc.assert(property, { numRuns: runs })
}
