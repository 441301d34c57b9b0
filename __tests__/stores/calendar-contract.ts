import fc from 'fast-check'
import type { CalendarOptions, Hit, Policy, Refund, Store } from '../../lib/index.js'
import { longestSeconds, resolveCalendar } from '../../lib/limiter/calendar-options.js'
import { WallClock } from '../limiter/wall-clock.js'
import { charge, decide, hit, hitOn, peek, policy } from './policies.js'
import { ReferenceModel } from './reference-model.js'
import type { OpenSubject, Subject } from './subject.js'

const HOUR = 3_600_000
const never = (): AbortSignal => new AbortController().signal

/** A calendar policy for tests. */
function quota(window: CalendarOptions, options: Parameters<typeof policy>[0] = {}): Policy {
  const calendar = resolveCalendar(window)
  return policy({
    algorithm: 'fixed-window',
    calendar,
    windowSeconds: longestSeconds(calendar),
    name: 'quota',
    ...options,
  })
}

/** Zones, and an instant near which their days are awkward. */
const SCENES = [
  ['America/Sao_Paulo', '2018-11-04T03:00Z'],
  ['America/Sao_Paulo', '2018-02-18T02:00Z'],
  ['America/Havana', '2024-11-03T05:00Z'],
  ['America/St_Johns', '2010-11-07T02:31Z'],
  ['Pacific/Apia', '2011-12-30T10:00Z'],
  ['Africa/Casablanca', '2026-02-15T02:00Z'],
  ['Asia/Kathmandu', '2026-04-30T18:15Z'],
  ['Australia/Lord_Howe', '2026-04-04T15:00Z'],
  ['Europe/Berlin', '2026-03-29T01:00Z'],
  ['UTC', '2024-03-01T00:00Z'],
] as const

/** What every store must do with the windows of a calendar. `runs` random schedules are tried. */
export function calendarContract(open: OpenSubject, runs: number): void {
  describe('the windows of a calendar', () => {
    let subject: Subject
    let store: Store
    const at = (time: string): Promise<void> => subject.setClock(Date.parse(time))

    beforeEach(async () => {
      subject = await open()
      store = subject.store
      await store.install()
    })
    afterEach(() => subject.close())

    it('count from the midnight of their zone to its next, 23 hours later when the clock goes forward', async () => {
      const berlin = quota({ every: 'day', timeZone: 'Europe/Berlin' }, { limit: 2 })
      await at('2026-03-28T22:59:59.999Z')
      const before = [
        await hit(store, 'a', berlin),
        await hit(store, 'a', berlin),
        await hit(store, 'a', berlin),
      ]
      expect(before.map(({ denied, resetMicros }) => [denied, resetMicros])).toEqual([
        [false, 1000],
        [false, 1000],
        [true, 1000],
      ])
      await at('2026-03-28T23:00:00Z')
      const first = await hit(store, 'a', berlin)
      expect([first.used, first.resetMicros / 1000 / HOUR]).toEqual([1, 23])
      await hit(store, 'a', berlin)
      await at('2026-03-29T21:59:59Z')
      const denied = await hit(store, 'a', berlin)
      expect([denied.denied, denied.retryMicros]).toEqual([true, 1_000_000])
      await at('2026-03-29T22:00:00Z')
      expect((await hit(store, 'a', berlin)).denied).toBe(false)
    })

    it('are kept apart by their unit, zone and first day', async () => {
      await at('2026-11-30T12:00Z')
      const windows: CalendarOptions[] = [
        { every: 'day' },
        { every: 'day', timeZone: 'Asia/Kathmandu' },
        { every: 'month' },
        { every: 'month', startsOn: 15 },
      ]
      for (const window of windows) expect((await hit(store, 'a', quota(window))).used).toBe(1)
    })

    it('give back what was taken in them, and nothing of the next one', async () => {
      const monthly = quota({ every: 'month', timeZone: 'America/Sao_Paulo' }, { limit: 5 })
      await at('2026-12-01T02:59:59Z')
      const first = await hit(store, 'a', monthly, 3)
      const second = await hit(store, 'a', monthly, 2)
      const back = (cost: number, when: number): Refund[] => [{ ...charge('a', monthly), cost, at: when }]
      await store.refund(back(3, first.at), never())
      expect((await peek(store, 'a', monthly)).used).toBe(2)
      await at('2026-12-01T03:00:00Z')
      expect((await hit(store, 'a', monthly)).used).toBe(1)
      await store.refund(back(2, second.at), never())
      expect((await peek(store, 'a', monthly)).used).toBe(1)
    })

    it('count attempts that were refused from memory, in the window they belong to and in no other', async () => {
      const daily = quota({ every: 'day', timeZone: 'Pacific/Apia' })
      await at('2011-12-30T09:00Z')
      const { windowStart } = await hit(store, 'a', daily)
      expect(windowStart).toBe(Date.parse('2011-12-29T10:00Z') * 1000)
      const refusal = { ...charge('a', daily), attempts: 4, windowStart, seen: 1 }
      await decide(store, [], [refusal])
      expect((await peek(store, 'a', daily)).used).toBe(5)
      await at('2011-12-30T10:00Z')
      await decide(store, [hitOn('a', daily)], [refusal])
      expect((await peek(store, 'a', daily)).used).toBe(1)
    })

    it('survive sweeps until they end', async () => {
      const monthly = quota({ every: 'month' }, { limit: 1 })
      await at('2026-12-01T00:00Z')
      await hit(store, 'a', monthly)
      for (let day = 2; day <= 31; day += 1) {
        await at(`2026-12-${String(day).padStart(2, '0')}T00:00Z`)
        await store.sweep()
        expect((await hit(store, 'a', monthly)).denied).toBe(true)
      }
      await at('2027-01-01T00:00Z')
      expect((await hit(store, 'a', monthly)).denied).toBe(false)
    })

    it('stay ended when the clock steps back', async () => {
      const daily = quota({ every: 'day' }, { limit: 1 })
      await at('2026-12-01T00:00:00.500Z')
      await hit(store, 'a', daily)
      await at('2026-11-30T23:59:59Z')
      expect((await hit(store, 'a', daily)).denied).toBe(true)
    })
  })

  it(
    'decides any schedule over calendar windows as the reference model does',
    () => agrees(open, runs),
    120_000,
  )
}

const clocks = new Map<string, WallClock>()
const wallClock = (timeZone: string): WallClock => {
  const clock = clocks.get(timeZone) ?? new WallClock(timeZone)
  clocks.set(timeZone, clock)
  return clock
}

/** The quotas of one zone, beside windows of a length. */
function policiesOf(timeZone: string): Map<Policy, CalendarOptions | null> {
  const windows: [CalendarOptions, Parameters<typeof quota>[1]][] = [
    [
      { every: 'hour', timeZone },
      { limit: 3, name: 'h' },
    ],
    [
      { every: 'day', timeZone },
      { limit: 4, name: 'd' },
    ],
    [
      { every: 'day', timeZone },
      { limit: 6, name: 'd', audit: true },
    ],
    [
      { every: 'week', timeZone, startsOn: 'sunday' },
      { limit: 9, name: 'w' },
    ],
    [
      { every: 'month', timeZone, startsOn: 31 },
      { limit: 12, name: 'm' },
    ],
  ]
  return new Map<Policy, CalendarOptions | null>([
    ...windows.map(([window, options]) => [quota(window, options), window] as const),
    [policy({ name: 'f', limit: 3, windowSeconds: 3600, algorithm: 'fixed-window' }), null],
    [policy({ name: 'p', limit: 5, windowSeconds: 3600 }), null],
  ])
}

const POLICY_COUNT = policiesOf('UTC').size

const someCharge = fc.record({ key: fc.constantFrom('a', 'b'), policy: fc.nat(POLICY_COUNT - 1) })
const someHit = fc.record({
  charges: fc.array(someCharge, { minLength: 1, maxLength: 2 }),
  cost: fc.integer({ min: 1, max: 3 }),
})
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ hits: fc.array(someHit, { minLength: 1, maxLength: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ advance: fc.integer({ min: 0, max: 90 * 60_000 }) }) },
  { weight: 2, arbitrary: fc.record({ advance: fc.integer({ min: 0, max: 30 * HOUR }) }) },
  { weight: 1, arbitrary: fc.record({ advance: fc.integer({ min: 0, max: 20 * 24 * HOUR }) }) },
  { weight: 1, arbitrary: fc.record({ back: fc.integer({ min: 1, max: 900 }) }) },
  { weight: 2, arbitrary: fc.record({ refund: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ reset: someCharge }) },
  { weight: 1, arbitrary: fc.constant({ sweep: true as const }) },
)

async function agrees(open: OpenSubject, runs: number): Promise<void> {
  const property = fc.asyncProperty(
    fc.constantFrom(...SCENES),
    fc.integer({ min: 0, max: 30 * HOUR }),
    fc.array(step, { minLength: 5, maxLength: 30 }),
    async ([timeZone, time], ahead, steps) => {
      const windows = policiesOf(timeZone)
      const policies = [...windows.keys()]
      const charged = (each: { key: string; policy: number }) =>
        charge(each.key, policies[each.policy] as Policy)
      const model = new ReferenceModel((by, micros) => {
        const options = windows.get(by)
        if (!options) {
          const start = micros - (micros % by.windowMicros)
          return { start, end: start + by.windowMicros }
        }
        const { start, end } = wallClock(timeZone).windowAt(options, Math.floor(micros / 1000))
        return { start: start * 1000, end: end * 1000 }
      })
      const subject = await open()
      try {
        const { store } = subject
        let taken: Refund[] = []
        let clock = Date.parse(time) - ahead
        let newest = clock
        await subject.setClock(clock)
        for (const each of steps) {
          if ('hits' in each) {
            // A fixed window is counted once a hit, by the first policy that looks at it.
            const hits: Hit[] = each.hits.map(({ charges, cost }) => ({
              charges: [...new Map(charges.map(charged).map((one) => [one.key, one])).values()],
              cost,
            }))
            const verdicts = await decide(store, hits)
            const told = verdicts.map(({ readings }) => ({
              granted: undefined,
              readings: readings.map(({ denied, used, retryMicros }) => ({ denied, retryMicros, used })),
            }))
            expect(told).toEqual(model.decide(hits, clock * 1000))
            verdicts.forEach(({ allowed, readings }, i) => {
              const { charges, cost } = hits[i] as Hit
              if (!allowed) return
              for (const [j, one] of charges.entries())
                taken.push({ ...one, cost, at: readings[j]?.at as number })
            })
          } else if ('refund' in each) {
            const [refund] = taken.splice(-1 - each.refund, 1)
            if (refund === undefined) continue
            await store.refund([refund], never())
            model.refund(refund.key, refund.policy, refund.cost, refund.at)
          } else if ('reset' in each) {
            const { key } = charged(each.reset)
            await store.reset([key])
            model.reset(key)
            taken = taken.filter((refund) => refund.key !== key)
          } else if ('sweep' in each) {
            await store.sweep()
          } else {
            clock = 'back' in each ? Math.max(clock - each.back, newest - 900) : clock + each.advance
            newest = Math.max(newest, clock)
            await subject.setClock(clock)
          }
        }
      } finally {
        await subject.close()
      }
    },
  )
  await fc.assert(property, { numRuns: runs })
}
