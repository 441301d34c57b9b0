import { checkBoolean, checkOptionNames, optionError } from '../stores/option-error.js'
import type { Algorithm, Policy, Store } from '../stores/store.js'
import type { Logger } from './failure-log.js'

/** What a limiter is made of. */
export interface LimiterOptions {
  /** Where it counts. Any number of limiters may share a store. */
  readonly store: Store
  /** Highest cost admitted in a window: a whole number from 0, which denies everything, to 1,000,000,000,000. */
  readonly limit: number
  /** Length of the window in seconds: 0.001 to 31,536,000 (a year). */
  readonly windowSeconds: number
  /**
   * The policy's name in headers and problems, and the namespace of its keys: letters, digits and `._-`, up to 64.
   * Default `default`. Limiters of one name on one store share what they count of equal keys.
   */
  readonly name?: string | undefined
  /** Default `sliding-window`. */
  readonly algorithm?: Algorithm | undefined
  /**
   * What happens while the store does not answer: `allow` (default) lets requests through uncounted, `deny` refuses
   * them with 503. Either way the decision says `degraded`, never `denied`.
   */
  readonly onStoreError?: 'allow' | 'deny' | undefined
  /** The longest a decision may take, in milliseconds: 1 to 60,000. After that `onStoreError` decides. Default 250. */
  readonly timeoutMs?: number | undefined
  /** How long admitted events are kept past their window, in seconds, as an audit log: 0 to 31,536,000. Default 0. */
  readonly retainSeconds?: number | undefined
  /** Whether a `fixed-window` policy also writes its admitted hits to the event log. Default false. */
  readonly audit?: boolean | undefined
  /** Where failures of the store are reported, at most every 30 seconds. Default `console`. */
  readonly logger?: Logger | undefined
}

/** The options of a limiter, checked and complete. */
export interface ResolvedLimiterOptions {
  readonly store: Store
  readonly policy: Policy
  readonly onStoreError: 'allow' | 'deny'
  readonly timeoutMs: number
  readonly logger: Logger
}

export const LIMITER_OPTION_NAMES = [
  'store',
  'limit',
  'windowSeconds',
  'name',
  'algorithm',
  'onStoreError',
  'timeoutMs',
  'retainSeconds',
  'audit',
  'logger',
] as const

/** The name of a limiter that was given none. */
export const DEFAULT_NAME = 'default'

const HIGHEST_LIMIT = 1_000_000_000_000
const YEAR_SECONDS = 31_536_000
const STORE_METHODS = ['install', 'decide', 'peek', 'refund', 'block', 'reset', 'sweep', 'close'] as const

/** @throws TypeError with the option's name, the rule, and the value with its type. */
export function resolveLimiterOptions(options: LimiterOptions): ResolvedLimiterOptions {
  checkOptionNames('the limiter', options, LIMITER_OPTION_NAMES)
  const {
    store,
    limit,
    windowSeconds,
    name = DEFAULT_NAME,
    algorithm = 'sliding-window',
    onStoreError = 'allow',
    timeoutMs = 250,
    retainSeconds = 0,
    audit = false,
    logger = console,
  } = options

  if (!STORE_METHODS.every((method) => typeof store?.[method] === 'function')) {
    throw optionError('store', 'a MysqlStore, SqliteStore or MemoryStore', store)
  }
  if (!Number.isSafeInteger(limit) || limit < 0 || limit > HIGHEST_LIMIT) {
    throw optionError('limit', `a whole number from 0 to ${HIGHEST_LIMIT}`, limit)
  }
  checkSeconds('windowSeconds', windowSeconds, 0.001)
  checkSeconds('retainSeconds', retainSeconds, 0)
  if (typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
    throw optionError('name', '1 to 64 letters, digits, dots, underscores and hyphens', name)
  }
  if (algorithm !== 'sliding-window' && algorithm !== 'fixed-window') {
    throw optionError('algorithm', '`sliding-window` or `fixed-window`', algorithm)
  }
  if (onStoreError !== 'allow' && onStoreError !== 'deny') {
    throw optionError('onStoreError', '`allow` or `deny`', onStoreError)
  }
  if (!(Number.isFinite(timeoutMs) && timeoutMs >= 1 && timeoutMs <= 60_000)) {
    throw optionError('timeoutMs', 'a number from 1 to 60000', timeoutMs)
  }
  checkBoolean('audit', audit)
  if (typeof logger?.error !== 'function')
    throw optionError('logger', 'an object with an `error` method', logger)

  const policy: Policy = {
    name,
    limit,
    windowSeconds,
    windowMicros: Math.round(windowSeconds * 1_000_000),
    algorithm,
    keepMicros: Math.round((windowSeconds + retainSeconds) * 1_000_000),
    audit,
  }
  return { store, policy, onStoreError, timeoutMs, logger }
}

function checkSeconds(name: string, value: unknown, least: number): void {
  if (typeof value !== 'number' || !(value >= least && value <= YEAR_SECONDS)) {
    throw optionError(name, `a number from ${least} to ${YEAR_SECONDS}`, value)
  }
}
