/**
 * Running totals go round here: numbers stay exact in JavaScript however much a key counts in its life, such as bytes. No
 * window holds as much as half of it, so two totals of one window tell what lies between them.
 */
export const TOTALS_GO_ROUND_AT = 2 ** 52

/** The running total after some more cost. */
export const addToTotal = (total: number, cost: number): number => {
  const sum = total + cost
  return sum > TOTALS_GO_ROUND_AT ? sum - TOTALS_GO_ROUND_AT : sum
}

/** What was counted between two running totals; negative only when the later one is of another life of the key. */
export const countedSince = (total: number, base: number): number => {
  const counted = total - base
  return counted < -TOTALS_GO_ROUND_AT / 2 ? counted + TOTALS_GO_ROUND_AT : counted
}
