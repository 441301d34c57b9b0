import type { Account } from './account.js'
import type { Demand } from './demand.js'
import { isLogged } from './is-logged.js'
import { type KeyWrite, type RetryLookup, SettlingKey } from './settling-key.js'
import type { Batch, Charge, Reading, Verdict } from './store.js'

/** Everything that follows from a batch, for the store to write, and to answer when that is committed. */
export interface Settlement {
  readonly verdicts: Verdict[]
  readonly writes: KeyWrite[]
  readonly lookups: RetryLookup[]
}

/**
 * Decides a batch over keys that are locked and read: pure arithmetic, the same for every store, so that exactness
 * is proved once. Hits are taken in order, each all or nothing.
 */
export function settle(
  batch: Batch,
  demands: ReadonlyMap<string, Demand>,
  accounts: ReadonlyMap<string, Account>,
): Settlement {
  const entries = new Map<string, SettlingKey>()
  for (const [key, demand] of demands) {
    const account = accounts.get(key)
    if (account === undefined) throw new Error('a key of the batch was not read')
    entries.set(key, new SettlingKey(account, demand))
  }
  const entryOf = (key: string): SettlingKey => entries.get(key) as SettlingKey

  for (const refusal of batch.refusals) entryOf(refusal.key).countRefusal(refusal)

  const lookups: RetryLookup[] = []
  const verdicts = batch.hits.map(({ charges, cost, force = false, lease }): Verdict => {
    const denied = charges.map(({ key, policy }) => !force && entryOf(key).denies(policy, cost))
    const allowed = !denied.includes(true)
    const room = (): number => Math.min(...charges.map(({ key, policy }) => entryOf(key).room(policy)))
    const granted = lease !== undefined && allowed ? Math.max(cost, Math.min(lease.units, room())) : cost

    // A key named by two charges of one hit (one log, two windows) is charged once.
    const charged = new Set<string>()
    charges.forEach(({ key, policy }, i) => {
      const counts = allowed || (denied[i] && policy.algorithm === 'fixed-window')
      if (!counts || charged.has(key)) return
      charged.add(key)
      const entry = entryOf(key)
      const counted = entry.count(policy, granted)
      if (allowed && isLogged(policy)) entry.logged += counted
    })

    const readings = charges.map(({ key, policy }, i) => {
      const entry = entryOf(key)
      const reading = entry.judge(key, policy, cost, denied[i] === true, lookups)
      if (allowed) reading.at = entry.stamp
      return reading
    })
    return lease === undefined || !allowed ? { allowed, readings } : { allowed, readings, granted }
  })

  const writes: KeyWrite[] = []
  for (const [key, entry] of entries) {
    const write = entry.write(key)
    if (write !== null) writes.push(write)
  }
  return { verdicts, writes, lookups: boundedLookups(lookups) }
}

/** The state of the charges as read, nothing counted: each judged as a hit of cost 1 would be. */
export function settlePeek(
  charges: readonly Charge[],
  accounts: ReadonlyMap<string, Account>,
): Pick<Settlement, 'lookups'> & { readings: Reading[] } {
  const lookups: RetryLookup[] = []
  const readings = charges.map(({ key, policy }) => {
    const account = accounts.get(key)
    if (account === undefined) throw new Error('a key was not read')
    const entry = new SettlingKey(account, { key, policies: [policy], span: 0, leaseMicros: 0 })
    return entry.judge(key, policy, 1, entry.denies(policy, 1), lookups)
  })
  return { readings, lookups }
}

/**
 * The most events that a batch's lookups may walk, beside those of its first one: they walk under the keys' locks, and
 * 100,000 events take 36 ms.
 */
const MOST_WALKED = 20_000

/**
 * One lookup for all hits that wait for the same event, as they do when a limit was lowered. Those beyond the bound are
 * told the longest wait there can be, which is never too early; it is not remembered as the end of their denial.
 */
function boundedLookups(lookups: readonly RetryLookup[]): RetryLookup[] {
  const together = new Map<string, RetryLookup>()
  let walked = 0
  for (const lookup of lookups) {
    const id = `${lookup.base} ${lookup.excess} ${lookup.after} ${lookup.key}`
    const same = together.get(id)
    if (same !== undefined) {
      const { resolve } = same
      together.set(id, {
        ...same,
        resolve: (ts) => {
          resolve(ts)
          lookup.resolve(ts)
        },
      })
    } else if (together.size === 0 || walked + lookup.excess <= MOST_WALKED) {
      together.set(id, lookup)
      walked += lookup.excess
    } else lookup.giveUp()
  }
  return [...together.values()]
}
