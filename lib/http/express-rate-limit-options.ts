import { HIGHEST_LIMIT, type LimiterOptions } from '../limiter/limiter-options.js'
import { optionError } from '../stores/option-error.js'
import type { Algorithm, Store } from '../stores/store.js'

/** How a store works under express-rate-limit. */
export interface ExpressRateLimitStoreOptions {
  /**
   * The namespace of the limiter's keys in the store: letters, digits and `._-`, up to 64. Required, and another one for
   * each limiter on the store, as two of one name would share their counters.
   */
  readonly name: string
  /**
   * `sliding-window` is exact, and denied requests are not counted; it needs express-rate-limit's `limit` to be a number.
   * `fixed-window` counts every request, denied ones too, in windows aligned to multiples of `windowMs` since the
   * Unix epoch; choose it for what goes by how far a count is above the limit, such as express-slow-down. Default
   * `sliding-window`, and where `limit` is a function `fixed-window`, because no store is told what it returned.
   */
  readonly algorithm?: Algorithm | undefined
  /** The longest that `increment` may take, in milliseconds: 1 to 60,000. Default 250. */
  readonly timeoutMs?: number | undefined
  /** The most hits that may wait for the store: 1 to 1,000,000. Default 10,000. */
  readonly maxPending?: number | undefined
  /** Stores keys as HMAC-SHA256 with this secret, of at least 16 characters. Default: keys are stored readable. */
  readonly hashKeys?: string | undefined
}

/** What a store needs of the options of express-rate-limit. */
export interface ExpressRateLimitOptions {
  readonly windowMs: number
  /** A number, or a function of the request. */
  readonly limit?: unknown
  /** The name of `limit` before express-rate-limit 7. */
  readonly max?: unknown
  readonly skipSuccessfulRequests?: boolean | undefined
  readonly skipFailedRequests?: boolean | undefined
}

/** express-rate-limit's own default, until it has told the store its options. */
export const UNTOLD: ExpressRateLimitOptions = { windowMs: 60_000 }

const YEAR_MS = 31_536_000_000

export const STORE_OPTION_NAMES = ['name', 'algorithm', 'timeoutMs', 'maxPending', 'hashKeys'] as const

const limitOf = ({ limit, max }: ExpressRateLimitOptions): unknown => limit ?? max

/** Whether hits may be given back. */
export const givesBack = ({ skipSuccessfulRequests, skipFailedRequests }: ExpressRateLimitOptions): boolean =>
  skipSuccessfulRequests === true || skipFailedRequests === true

/** Whether one store can serve both. */
export const isSameRule = (a: ExpressRateLimitOptions, b: ExpressRateLimitOptions): boolean =>
  a.windowMs === b.windowMs && limitOf(a) === limitOf(b) && givesBack(a) === givesBack(b)

/**
 * The limiter that counts for express-rate-limit.
 *
 * @throws TypeError for rules that it cannot keep.
 */
export function limiterOptionsFor(
  store: Store,
  options: ExpressRateLimitStoreOptions,
  told: ExpressRateLimitOptions,
): LimiterOptions {
  const limit = limitOf(told)
  const isNumber = typeof limit === 'number'
  const { algorithm = isNumber ? 'sliding-window' : 'fixed-window', ...others } = options
  if (told !== UNTOLD && algorithm === 'sliding-window' && !isNumber) {
    throw new TypeError("`algorithm: 'sliding-window'` needs express-rate-limit's `limit` to be a number")
  }
  if (!(typeof told.windowMs === 'number' && told.windowMs >= 1 && told.windowMs <= YEAR_MS)) {
    throw optionError('windowMs', `a number from 1 to ${YEAR_MS}`, told.windowMs)
  }
  // Refusals of a fixed window count, and can be given back as well: then none may be answered from memory, where they
  // are counted late. Without a limit none is; express-rate-limit denies by itself.
  const onlyCounts = algorithm === 'fixed-window' && givesBack(told)
  return {
    ...others,
    store,
    algorithm,
    limit: isNumber && !onlyCounts ? wholeLimit(limit) : HIGHEST_LIMIT,
    windowSeconds: told.windowMs / 1000,
    // The decision then carries the error, and express-rate-limit says what becomes of the request.
    onStoreError: 'deny',
    // express-rate-limit reports the error, or hands it to the application.
    logger: { error() {} },
  }
}

/** express-rate-limit compares a whole count with any number: 2.5 allows two, and Infinity all. */
const wholeLimit = (limit: number): number => Math.min(Math.floor(limit), HIGHEST_LIMIT)
