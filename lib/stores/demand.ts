import type { Batch, Charge, Policy } from './store.js'

/** What has to be read of one key before a batch can be settled. */
export interface Demand {
  readonly key: string
  readonly policies: Policy[]
  /** The longest `keepMicros` among the batch's policies on this key. */
  span: number
  /** The longest lease that the batch asks of this key, in microseconds; 0 when it asks for none. */
  leaseMicros: number
}

/** The keys a batch touches and the policies that ask about each. */
export function demandsOf(batch: Batch): Map<string, Demand> {
  const demands = new Map<string, Demand>()
  const add = ({ key, policy }: Charge, lease = 0): void => {
    const span = policy.keepMicros
    // A fixed window counts by its start: there a lease ends with the window, and needs no time of its own.
    const leaseMicros = policy.algorithm === 'fixed-window' ? 0 : lease
    const demand = demands.get(key)
    if (demand === undefined) {
      demands.set(key, { key, policies: [policy], span, leaseMicros })
      return
    }
    if (!demand.policies.includes(policy)) demand.policies.push(policy)
    if (span > demand.span) demand.span = span
    if (leaseMicros > demand.leaseMicros) demand.leaseMicros = leaseMicros
  }
  for (const hit of batch.hits) for (const charge of hit.charges) add(charge, hit.lease?.micros)
  for (const refusal of batch.refusals) add(refusal)
  return demands
}

/** The demands of a peek. */
export const demandsOfPeek = (charges: readonly Charge[]): Map<string, Demand> =>
  demandsOf({ hits: [{ charges, cost: 1 }], refusals: [] })
