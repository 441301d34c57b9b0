import type { Charge, Reading, Refund } from '../stores/store.js'

/** What gives back an admitted hit. A key named by two charges of one hit was charged once. */
export function refundsOf(charges: readonly Charge[], readings: readonly Reading[], cost: number): Refund[] {
  const refunds = charges.map(({ key, policy }, i) => ({
    key,
    policy,
    cost,
    at: (readings[i] as Reading).at,
  }))
  return refunds.length === 1 ? refunds : [...new Map(refunds.map((refund) => [refund.key, refund])).values()]
}
