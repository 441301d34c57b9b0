/** What several rounds gave. */
export interface Spread {
  readonly median: number
  readonly lowest: number
  readonly highest: number
}

/** @throws RangeError for no values at all. */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) throw new RangeError('Expected at least one value')
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] as number
  const median = sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2
  return { median, lowest: sorted[0] as number, highest: sorted.at(-1) as number }
}

/**
 * The median of the ratios of each round. What slows a whole round down, such as another program, leaves it alone.
 *
 * @throws RangeError when there are not as many of the one as of the other.
 */
export function ratioOf(values: readonly number[], others: readonly number[]): number {
  if (values.length !== others.length) throw new RangeError('Expected as many rounds of both')
  return spreadOf(values.map((value, i) => value / (others[i] as number))).median
}
