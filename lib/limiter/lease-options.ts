import { optionError } from '../stores/option-error.js'

/** For one very hot limit. */
export interface LeaseOptions {
  /**
   * Units that a process takes from the store at a time and hands out by itself, for at most a second or a tenth of the
   * window: a whole number from 2 to a tenth of the limit. Then only one of so many hits asks the store. The limit is
   * never exceeded, but hits may be refused early, for units that other processes hold and have not used. Default: none.
   */
  readonly lease?: number | undefined
}

/** @throws TypeError unless it is a whole number from 2 to a tenth of the limit. */
export function checkLease(value: unknown, limit: number): asserts value is number {
  const most = Math.floor(limit / 10)
  if (Number.isSafeInteger(value) && (value as number) >= 2 && (value as number) <= most) return
  const rule =
    most < 2
      ? 'left out where the limit is below 20'
      : `a whole number from 2 to ${most}, a tenth of the limit: what one process holds is refused to others`
  throw optionError('lease', rule, value)
}
