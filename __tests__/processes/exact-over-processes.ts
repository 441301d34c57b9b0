import { type Admission, checkHistory } from './check-history.js'
import { findOverfull } from './check-sightings.js'
import type { Setting } from './open-subject.js'
import { admittedByKey, degradedIn, type HitProcess, runTogether, startProcess } from './run-processes.js'

/** How many processes hit at once. */
export const PROCESSES = 4
const HOUR = 3600

/** A place where processes can count together. */
export interface Place {
  /** Where each process counts, in turn: one store for all, or the nodes of a cluster. */
  readonly stores: readonly Setting['store'][]
  /** What is stored of the keys. */
  admissions(): Promise<Admission[]>
}

/** Starts processes that count in the stores in turn. */
export const startProcesses = (
  stores: Place['stores'],
  setting: Omit<Setting, 'store'>,
): Promise<HitProcess[]> =>
  Promise.all(
    Array.from({ length: PROCESSES }, (_, i) =>
      startProcess({ ...setting, store: stores[i % stores.length] as Setting['store'] }),
    ),
  )

export const endAll = (processes: readonly HitProcess[]): Promise<unknown> =>
  Promise.all(processes.map((process) => process.end()))

/** The same proofs for every store that processes can share. Each `place()` is empty. */
export function exactOverProcesses(place: () => Promise<Place>): void {
  it.each([
    ['one hot key', 1000, 1, 2000],
    ['fifty keys', 20, 50, 1000],
    ['five thousand cold keys', 3, 5000, 7500],
  ])(
    'admit exactly the limit of %s',
    async (_, limit, count, hits) => {
      const { stores, admissions } = await place()
      const processes = await startProcesses(stores, { limit, windowSeconds: HOUR })
      const outcomes = await runTogether(processes, { first: 0, count, hits, callers: 32 })
      await endAll(processes)

      expect(degradedIn(outcomes)).toEqual([])
      const admitted = admittedByKey(outcomes)
      expect(Object.entries(admitted).filter(([, times]) => times !== limit)).toEqual([])
      expect(Object.keys(admitted)).toHaveLength(count)
      // What was told to callers is what is stored.
      const stored = (await admissions()).reduce((sum, each) => sum + each.hits, 0)
      expect(stored).toBe(limit * count)
    },
    120_000,
  )

  it('admit ten of 300 concurrent hits on a cold key, twenty times over', async () => {
    const { stores } = await place()
    const processes = await startProcesses(stores, { limit: 10, windowSeconds: HOUR })
    for (let round = 0; round < 20; round += 1) {
      const outcomes = await runTogether(processes, { first: round, count: 1, hits: 75, callers: 75 })
      expect(degradedIn(outcomes)).toEqual([])
      expect(admittedByKey(outcomes)).toEqual({ [`key ${round}`]: 10 })
    }
    await endAll(processes)
  }, 120_000)

  it('hold every window and justify every denial, by the clock of the store', async () => {
    const { stores, admissions } = await place()
    const limit = 5
    const windowSeconds = 0.2
    const processes = await startProcesses(stores, { limit, windowSeconds, retainSeconds: HOUR })
    const outcomes = await runTogether(processes, {
      first: 0,
      count: 10,
      millis: 2500,
      callers: 16,
      refusedMillis: 1,
    })
    await endAll(processes)

    expect(degradedIn(outcomes)).toEqual([])
    const history = await admissions()
    const denials = outcomes.flatMap((outcome) => outcome.denials)
    expect(checkHistory(history, denials, limit, windowSeconds * 1e6)).toEqual([])
    // There was something to check.
    expect(history.length).toBeGreaterThan(50)
    expect(denials.length).toBeGreaterThan(50)
  }, 120_000)

  it('hold every window of a key that they lease, by the clock of the machine', async () => {
    const { stores, admissions } = await place()
    const limit = 400
    const windowSeconds = 1
    const processes = await startProcesses(stores, { limit, windowSeconds, retainSeconds: HOUR, lease: 40 })
    const outcomes = await runTogether(processes, {
      first: 0,
      count: 1,
      millis: 4000,
      callers: 4,
      // Slow enough for leases to be used until their end.
      pauseMillis: 15,
    })
    await endAll(processes)

    expect(degradedIn(outcomes)).toEqual([])
    const uses = outcomes.flatMap(({ sightings }) =>
      sightings.filter(({ outcome }) => outcome === 'admitted'),
    )
    expect(findOverfull(uses, limit, windowSeconds * 1e6, 0)).toEqual([])
    const history = await admissions()
    expect(checkHistory(history, [], limit, windowSeconds * 1e6)).toEqual([])
    // There was something to check, and nearly all of it came from memory.
    expect(uses.length).toBeGreaterThan(2 * limit)
    expect(history.length).toBeLessThan(uses.length / 4)
  }, 120_000)
}
