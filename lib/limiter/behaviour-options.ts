import { checkBoolean, optionError } from '../stores/option-error.js'
import type { Store } from '../stores/store.js'
import type { StoreError } from '../stores/store-error.js'
import type { Decision } from './decision.js'
import type { Logger } from './failure-log.js'

/** Called with every decision, or those of a kind. What it throws or rejects with never reaches the request. */
export type DecisionHook = (decision: Decision, request?: unknown) => unknown

/** What to do with a request while the store does not answer; see `onStoreError`. */
export type StoreErrorRule = 'allow' | 'deny' | 'local'

/**
 * What to do with one request while the store does not answer. It must say at once; one that throws, or says anything
 * else, has not said that the request may pass.
 */
export type StoreErrorFunction = (error: StoreError, request?: unknown) => StoreErrorRule

/** The rule for requests while the store does not answer. */
export type OnStoreError = StoreErrorRule | StoreErrorFunction

/** What a limiter is beside its limits. */
export interface BehaviourOptions {
  /** Where it counts. Any number of limiters may share a store. */
  readonly store: Store
  /**
   * What happens while the store does not answer. Whichever it is, the decision says `degraded`, never `denied`.
   *
   * - `allow` (default) lets requests through uncounted. But where the store works and only has too much to do, or others
   *   in its way (`ERR_STORE_CAPACITY`, `ERR_STORE_CONFLICT`), it is `local`: clients can bring that about.
   * - `deny` refuses them with 503.
   * - `local` limits them by what this process alone has counted since then, exactly, by the same limits: each
   *   process allows as much as they say, unless `localShare` divides them. Keys that were denied when the store failed
   *   stay denied until that denial ends. Nothing of it is written to the store later.
   * - A function says for each request which of the three.
   */
  readonly onStoreError?: OnStoreError | undefined
  /**
   * How many processes share the limits, a whole number from 1 to 1,000,000: where a process limits by what it counts
   * alone it allows its part of them, rounded up, at least 1 of a limit that is not 0. Default 1.
   */
  readonly localShare?: number | undefined
  /** The longest a decision may take, in milliseconds: 1 to 60,000. After that `onStoreError` decides. Default 250. */
  readonly timeoutMs?: number | undefined
  /**
   * The most hits that may wait for the store when one of this limiter joins them: 1 to 1,000,000. They are those of all
   * limiters on the store, which share its queue; a limiter with fewer gives way to the others. One hit more, and
   * `onStoreError` decides it at once, but never lets it through uncounted. Default 10,000.
   */
  readonly maxPending?: number | undefined
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

/** Behaviour, checked and complete. */
export interface Behaviour {
  readonly store: Store
  readonly onStoreError: OnStoreError
  readonly localShare: number
  readonly timeoutMs: number
  readonly maxPending: number
  readonly dryRun: boolean
  readonly hashKeys: string | null
  readonly onDecision: DecisionHook | null
  readonly onDenied: DecisionHook | null
  readonly onDegraded: DecisionHook | null
  readonly logger: Logger
}

export const BEHAVIOUR_OPTION_NAMES = [
  'store',
  'onStoreError',
  'localShare',
  'timeoutMs',
  'maxPending',
  'dryRun',
  'hashKeys',
  'onDecision',
  'onDenied',
  'onDegraded',
  'logger',
] as const

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
export function resolveBehaviour(options: BehaviourOptions): Behaviour {
  const {
    store,
    onStoreError = 'allow',
    localShare = 1,
    timeoutMs = 250,
    maxPending = 10_000,
    dryRun = false,
    hashKeys,
    logger = console,
  } = options
  if (!STORE_METHODS.every((method) => typeof store?.[method] === 'function')) {
    throw optionError('store', 'a MysqlStore, SqliteStore or MemoryStore', store)
  }
  if (!isRule(onStoreError) && typeof onStoreError !== 'function') {
    throw optionError('onStoreError', '`allow`, `deny`, `local` or a function', onStoreError)
  }
  checkCount('localShare', localShare)
  if (options.localShare !== undefined && onStoreError === 'deny') {
    throw new TypeError('`localShare` has no meaning while `onStoreError` is `deny`')
  }
  if (!(Number.isFinite(timeoutMs) && timeoutMs >= 1 && timeoutMs <= 60_000)) {
    throw optionError('timeoutMs', 'a number from 1 to 60000', timeoutMs)
  }
  checkCount('maxPending', maxPending)
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
    localShare,
    timeoutMs,
    maxPending,
    dryRun,
    hashKeys: hashKeys ?? null,
    onDecision,
    onDenied,
    onDegraded,
    logger,
  }
}

const RULES: readonly unknown[] = ['allow', 'deny', 'local'] satisfies StoreErrorRule[]

/** Whether `onStoreError`, or what its function returned, is a rule. */
export const isRule = (value: unknown): value is StoreErrorRule => RULES.includes(value)

function checkCount(name: string, value: unknown): void {
  if (!Number.isInteger(value) || (value as number) < 1 || (value as number) > 1_000_000) {
    throw optionError(name, 'a whole number from 1 to 1000000', value)
  }
}
