import { checkLease } from '../limiter/lease-options.js'
import { checkLimit } from '../limiter/limiter-options.js'
import { optionError } from '../stores/option-error.js'
import type { RateLimitOptions, RateLimitsOptions } from './options.js'

/** One limit that is the same for every request: how many units are a tenth of it is known only then. */
export function leaseOf(options: RateLimitOptions | RateLimitsOptions): number | null {
  const { lease, limit, windowSeconds, window }: Partial<RateLimitOptions> = options
  if (lease === undefined) return null
  if ('limits' in options)
    throw optionError('lease', 'left out where there are several limits: only one limit can be leased', lease)
  if ([limit, windowSeconds, window].some((value) => typeof value === 'function'))
    throw optionError('lease', 'left out where `limit` or its window depends on the request', lease)
  checkLimit(limit)
  checkLease(lease, limit)
  return lease
}
