import { storageKey } from '../../lib/limiter/storage-key.js'
import type { Batch, Charge, Hit, Policy, Reading, Store, Verdict } from '../../lib/stores/store.js'

/** A signal that never aborts; a new one each, as each batch has its own. */
const never = (): AbortSignal => new AbortController().signal

/** A policy for tests; only what matters to the test is named. */
export function policy(
  options: Partial<Omit<Policy, 'windowMicros' | 'keepMicros'>> & {
    keepSeconds?: number
    retainSeconds?: number
  } = {},
): Policy {
  const { retainSeconds = 0, windowSeconds = 60, keepSeconds, ...rest } = options
  return {
    name: 'p',
    limit: 3,
    algorithm: 'sliding-window',
    audit: false,
    ...rest,
    windowSeconds,
    windowMicros: Math.round(windowSeconds * 1e6),
    keepMicros: Math.round((keepSeconds ?? windowSeconds + retainSeconds) * 1e6),
  }
}

export const charge = (key: string, by: Policy): Charge => ({ key: storageKey(by, key), policy: by })

export const hitOn = (key: string, by: Policy, cost = 1): Hit => ({ charges: [charge(key, by)], cost })

/** Decides some hits in one batch. */
export const decide = (store: Store, hits: Hit[], refusals: Batch['refusals'] = []): Promise<Verdict[]> =>
  store.decide({ hits, refusals }, never())

/** Decides one hit of one charge. */
export async function hit(store: Store, key: string, by: Policy, cost = 1): Promise<Reading> {
  const [verdict] = await decide(store, [hitOn(key, by, cost)])
  return verdict?.readings[0] as Reading
}

/** Decides the same hit several times, and tells which were admitted. */
export async function admitted(
  store: Store,
  times: number,
  key: string,
  by: Policy,
  cost = 1,
): Promise<boolean[]> {
  const outcomes: boolean[] = []
  for (let i = 0; i < times; i += 1) outcomes.push(!(await hit(store, key, by, cost)).denied)
  return outcomes
}

export async function peek(store: Store, key: string, by: Policy): Promise<Reading> {
  const [reading] = await store.peek([charge(key, by)], never())
  return reading as Reading
}
