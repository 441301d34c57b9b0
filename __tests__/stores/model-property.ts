import fc from 'fast-check'
import type { Hit, Refund } from '../../lib/stores/store.js'
import { charge, decide, policy } from './policies.js'
import { ReferenceModel } from './reference-model.js'
import { type OpenSubject, START } from './subject.js'

/** Policies that get in each other's way: one log under three windows, fixed windows, tiny and zero limits. */
const POLICIES = [
  policy({ limit: 3, windowSeconds: 1, keepSeconds: 5 }),
  policy({ limit: 8, windowSeconds: 4, keepSeconds: 5 }),
  policy({ limit: 5, windowSeconds: 2, keepSeconds: 5 }),
  policy({ name: 'q', limit: 1, windowSeconds: 1 }),
  policy({ name: 'l', limit: 9, windowSeconds: 1 }),
  policy({ name: 'z', limit: 0, windowSeconds: 1 }),
  policy({ name: 'f', limit: 3, windowSeconds: 1, algorithm: 'fixed-window' }),
  policy({ name: 'g', limit: 4, windowSeconds: 3, algorithm: 'fixed-window', audit: true }),
]

const someCharge = fc.record({ key: fc.constantFrom('a', 'b'), policy: fc.constantFrom(...POLICIES) })

/** Up to more units than most limits have, for up to more than the shortest window. */
const someLease = fc.record({
  units: fc.integer({ min: 1, max: 6 }),
  micros: fc.integer({ min: 1, max: 1_500_000 }),
})

/** One or two charges. A fixed window is counted once a hit, so two policies of a hit differ in their key. */
const someHit: fc.Arbitrary<Hit> = fc
  .record({
    charges: fc.array(someCharge, { minLength: 1, maxLength: 2 }),
    cost: fc.integer({ min: 1, max: 4 }),
    lease: fc.option(someLease, { nil: undefined }),
  })
  .map(({ charges, cost, lease }) => ({
    charges: charges.map(({ key, policy }) => charge(key, policy)),
    cost,
    ...(lease === undefined ? {} : { lease }),
  }))

const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ hits: fc.array(someHit, { minLength: 1, maxLength: 4 }) }) },
  { weight: 6, arbitrary: fc.record({ advance: fc.integer({ min: 0, max: 1500 }) }) },
  { weight: 1, arbitrary: fc.record({ advance: fc.integer({ min: 3000, max: 100_000 }) }) },
  { weight: 1, arbitrary: fc.record({ back: fc.integer({ min: 1, max: 900 }) }) },
  { weight: 1, arbitrary: fc.record({ reset: someCharge }) },
  { weight: 2, arbitrary: fc.record({ refund: fc.nat(5), count: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 1, arbitrary: fc.constant({ sweep: true as const }) },
)

/**
 * Random schedules of batches, costs, leases, refunds, resets, sweeps and clock jumps: a store must answer each hit as
 * the reference model does, and no window may ever have held more than its limit.
 */
export async function agreesWithModel(open: OpenSubject, runs: number): Promise<void> {
  const property = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
    const subject = await open()
    try {
      const { store } = subject
      const model = new ReferenceModel()
      const taken: Refund[] = []
      let clock = START
      let newest = START
      await subject.setClock(clock)
      for (const each of steps) {
        if ('hits' in each) {
          const verdicts = await decide(store, each.hits)
          const told = verdicts.map(({ readings, granted }) => ({
            granted,
            readings: readings.map(({ denied, used, retryMicros }) => ({ denied, retryMicros, used })),
          }))
          expect(told).toEqual(model.decide(each.hits, clock * 1000))
          verdicts.forEach(({ allowed, readings: states, granted }, i) => {
            const { charges, cost } = each.hits[i] as Hit
            // A key is charged once a hit.
            const once = new Map(
              charges.map((one, j) => [one.key, { ...one, cost, at: states[j]?.at as number }]),
            )
            if (!allowed) return
            taken.push(...once.values())
            // What a lease granted beyond the hit may be given back for itself.
            const further = (granted ?? cost) - cost
            if (further > 0) for (const one of once.values()) taken.push({ ...one, cost: further })
          })
        } else if ('refund' in each) {
          const refunds = taken.splice(-1 - each.refund, each.count)
          if (refunds.length === 0) continue
          await store.refund(refunds, new AbortController().signal)
          for (const { key, policy, cost, at } of refunds) model.refund(key, policy, cost, at)
        } else if ('reset' in each) {
          const { key } = charge(each.reset.key, each.reset.policy)
          await store.reset([key])
          model.reset(key)
          // Only a test stands still so long that a hit after the reset has the instant of one before it.
          for (let i = taken.length - 1; i >= 0; i -= 1) if (taken[i]?.key === key) taken.splice(i, 1)
        } else if ('sweep' in each) {
          await store.sweep()
        } else {
          // Steps back add up to less than what a sweep leaves for them.
          clock = 'back' in each ? Math.max(clock - each.back, newest - 900) : clock + each.advance
          newest = Math.max(newest, clock)
          await subject.setClock(clock)
        }
      }
      // Logs of one policy have a bound of their own; others may share theirs under a larger limit.
      for (const by of POLICIES.filter(({ name }) => ['q', 'z', 'l'].includes(name))) {
        expect(model.busiest(charge('a', by).key, by.windowMicros)).toBeLessThanOrEqual(by.limit)
      }
    } finally {
      await subject.close()
    }
  })
  await fc.assert(property, { numRuns: runs })
}
