import { checkBoolean, checkOptionNames, optionError } from '../stores/option-error.js'
import type { Algorithm, Policy, Store } from '../stores/store.js'
import type { StoreError } from '../stores/store-error.js'
import type { Decision } from './decision.js'
import type { Logger } from './failure-log.js'

/** One limit: how much, in what time, counted how. */
export interface LimitOptions {
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
  /** How long admitted events are kept past their window, in seconds, as an audit log: 0 to 31,536,000. Default 0. */
  readonly retainSeconds?: number | undefined
  /** Whether a `fixed-window` policy also writes its admitted hits to the event log. Default false. */
  readonly audit?: boolean | undefined
}

/** Called with every decision, or those of a kind. What it throws or rejects with never reaches the request. */
export type DecisionHook = (decision: Decision, request?: unknown) => unknown

/**
 * What to do with one request while the store does not answer. It must say at once; one that throws, or says anything
 * else, has not said that the request may pass.
 */
export type StoreErrorFunction = (error: StoreError, request?: unknown) => 'allow' | 'deny'

/** The rule for requests while the store does not answer. */
export type OnStoreError = 'allow' | 'deny' | StoreErrorFunction

/** What a limiter is beside its limits. */
export interface BehaviourOptions {
  /** Where it counts. Any number of limiters may share a store. */
  readonly store: Store
  /**
   * What happens while the store does not answer: `allow` (default) lets requests through uncounted, `deny` refuses
   * them with 503, and a function says for each request which of the two. Whichever, the decision says `degraded`,
   * never `denied`.
   */
  readonly onStoreError?: OnStoreError | undefined
  /** The longest a decision may take, in milliseconds: 1 to 60,000. After that `onStoreError` decides. Default 250. */
  readonly timeoutMs?: number | undefined
  /** Decides, counts and reports, but denies nothing: for trying a limit out. Default false. */
  readonly dryRun?: boolean | undefined
  /**
   * Stores keys as HMAC-SHA256 with this secret, so that no address or e-mail is at rest: at least 16 characters.
   * Another secret means other counters. Default: keys are stored readable.
   */
  readonly hashKeys?: string | undefined
  /** Called with every decision. */
  readonly onDecision?: DecisionHook | undefined
  /** Called with every denial, of `dryRun` too. */
  readonly onDenied?: DecisionHook | undefined
  /** Called with every decision that the store did not make. */
  readonly onDegraded?: DecisionHook | undefined
  /** Where failures of the store are reported, at most every 30 seconds, and warnings, once. Default `console`. */
  readonly logger?: Logger | undefined
}

/** What a `Limiter` is made of. */
export interface LimiterOptions extends LimitOptions, BehaviourOptions {}

/** Behaviour, checked and complete. */
export interface Behaviour {
  readonly store: Store
  readonly onStoreError: OnStoreError
  readonly timeoutMs: number
  readonly dryRun: boolean
  readonly hashKeys: string | null
  readonly onDecision: DecisionHook | null
  readonly onDenied: DecisionHook | null
  readonly onDegraded: DecisionHook | null
  readonly logger: Logger
}

export const LIMIT_OPTION_NAMES = [
  'limit',
  'windowSeconds',
  'name',
  'algorithm',
  'retainSeconds',
  'audit',
] as const

export const BEHAVIOUR_OPTION_NAMES = [
  'store',
  'onStoreError',
  'timeoutMs',
  'dryRun',
  'hashKeys',
  'onDecision',
  'onDenied',
  'onDegraded',
  'logger',
] as const

/** The name of a limiter that was given none. */
export const DEFAULT_NAME = 'default'

const HIGHEST_LIMIT = 1_000_000_000_000
const YEAR_SECONDS = 31_536_000
const STORE_METHODS = [
  'install',
  'decide',
  'peek',
  'refund',
  'block',
  'reset',
  'probe',
  'sweep',
  'close',
] as const

/** @throws TypeError with the option's name, the rule, and the value with its type. */
export function resolveLimit(options: LimitOptions): Policy {
  const { limit, windowSeconds, name = DEFAULT_NAME, algorithm = 'sliding-window' } = options
  const { retainSeconds = 0, audit = false } = options
  checkLimit(limit)
  checkWindowSeconds(windowSeconds)
  checkSeconds('retainSeconds', retainSeconds, 0)
  checkName(name)
  if (algorithm !== 'sliding-window' && algorithm !== 'fixed-window') {
    throw optionError('algorithm', '`sliding-window` or `fixed-window`', algorithm)
  }
  checkBoolean('audit', audit)
  return {
    name,
    limit,
    windowSeconds,
    windowMicros: Math.round(windowSeconds * 1_000_000),
    algorithm,
    keepMicros: Math.round((windowSeconds + retainSeconds) * 1_000_000),
    audit,
  }
}

/** @throws TypeError with the option's name, the rule, and the value with its type. */
export function resolveBehaviour(options: BehaviourOptions): Behaviour {
  const {
    store,
    onStoreError = 'allow',
    timeoutMs = 250,
    dryRun = false,
    hashKeys,
    logger = console,
  } = options
  if (!STORE_METHODS.every((method) => typeof store?.[method] === 'function')) {
    throw optionError('store', 'a MysqlStore, SqliteStore or MemoryStore', store)
  }
  if (onStoreError !== 'allow' && onStoreError !== 'deny' && typeof onStoreError !== 'function') {
    throw optionError('onStoreError', '`allow`, `deny` or a function', onStoreError)
  }
  if (!(Number.isFinite(timeoutMs) && timeoutMs >= 1 && timeoutMs <= 60_000)) {
    throw optionError('timeoutMs', 'a number from 1 to 60000', timeoutMs)
  }
  checkBoolean('dryRun', dryRun)
  if (hashKeys !== undefined && !(typeof hashKeys === 'string' && hashKeys.length >= 16)) {
    // It is a secret: never repeat it.
    throw new TypeError(
      `Expected \`hashKeys\` to be a text of at least 16 characters, got another (${typeof hashKeys})`,
    )
  }
  for (const name of ['onDecision', 'onDenied', 'onDegraded'] as const) {
    const hook: unknown = options[name]
    if (hook !== undefined && typeof hook !== 'function') throw optionError(name, 'a function', hook)
  }
  if (typeof logger?.error !== 'function')
    throw optionError('logger', 'an object with an `error` method', logger)
  const { onDecision = null, onDenied = null, onDegraded = null } = options
  return {
    store,
    onStoreError,
    timeoutMs,
    dryRun,
    hashKeys: hashKeys ?? null,
    onDecision,
    onDenied,
    onDegraded,
    logger,
  }
}

/** @throws TypeError with the option's name, the rule, and the value with its type. */
export function resolveLimiterOptions(options: LimiterOptions): { policy: Policy; behaviour: Behaviour } {
  checkOptionNames('the limiter', options, [...LIMIT_OPTION_NAMES, ...BEHAVIOUR_OPTION_NAMES])
  return { behaviour: resolveBehaviour(options), policy: resolveLimit(options) }
}

/** @throws TypeError unless it is a whole number from 0 to 10¹². */
export function checkLimit(value: unknown): asserts value is number {
  if (!Number.isSafeInteger(value) || (value as number) < 0 || (value as number) > HIGHEST_LIMIT) {
    throw optionError('limit', `a whole number from 0 to ${HIGHEST_LIMIT}`, value)
  }
}

/** @throws TypeError unless it is a number of seconds from a millisecond to a year. */
export function checkWindowSeconds(value: unknown): asserts value is number {
  checkSeconds('windowSeconds', value, 0.001)
}

/** @throws TypeError unless it is a name as header fields and keys need it. */
export function checkName(value: unknown): asserts value is string {
  if (typeof value !== 'string' || !/^[A-Za-z0-9._-]{1,64}$/.test(value)) {
    throw optionError('name', '1 to 64 letters, digits, dots, underscores and hyphens', value)
  }
}

/** @throws TypeError unless it is a number of seconds up to a year. */
export function checkSeconds(name: string, value: unknown, least: number): asserts value is number {
  if (typeof value !== 'number' || !(value >= least && value <= YEAR_SECONDS)) {
    throw optionError(name, `a number from ${least} to ${YEAR_SECONDS}`, value)
  }
}

/** @throws TypeError unless it is a whole number from 1 to 10¹². */
export function checkCost(value: unknown): asserts value is number {
  if (!Number.isSafeInteger(value) || (value as number) < 1 || (value as number) > HIGHEST_LIMIT) {
    throw optionError('cost', `a whole number from 1 to ${HIGHEST_LIMIT}`, value)
  }
}
