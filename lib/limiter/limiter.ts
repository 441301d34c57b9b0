import { withinDeadline } from '../stores/before-abort.js'
import { checkOptionNames, optionError } from '../stores/option-error.js'
import type { Policy, Reading, Store } from '../stores/store.js'
import { StoreError } from '../stores/store-error.js'
import { type Decision, decisionOf, degradedDecision, limitStateOf } from './decision.js'
import type { DenyCache } from './deny-cache.js'
import { FailureLog } from './failure-log.js'
import { Lane } from './lane.js'
import { type LimiterOptions, type ResolvedLimiterOptions, resolveLimiterOptions } from './limiter-options.js'
import { type Key, keyText, storageKey } from './storage-key.js'

/** What a hit may say beside its key. */
export interface HitOptions {
  /** What the hit counts: a whole number from 1 to 1,000,000,000,000. Default 1. */
  readonly cost?: number | undefined
}

/** The most keys whose denial one limiter remembers. */
const DENY_CACHE_ENTRIES = 10_000
/** How long it remembers one at the most, in milliseconds: how late a reset in another process may be seen. */
const DENY_CACHE_LIFE_MS = 1000
/** The highest cost of a hit. */
const HIGHEST_COST = 1_000_000_000_000

/**
 * A limit on a store, without Express: for jobs, sockets and other frameworks. `rateLimit` makes one for each
 * middleware.
 *
 * @example
 * const limiter = new Limiter({ store, name: 'export', limit: 5, windowSeconds: 3600 })
 * const decision = await limiter.hit(`user:${userId}`)
 * if (!decision.allowed) throw new Error('too many exports')
 *
 * @throws TypeError for a wrong or unknown option.
 */
export class Limiter {
  /** What this limiter enforces. */
  readonly policy: Policy
  readonly #options: ResolvedLimiterOptions
  readonly #lane: Lane
  readonly #denials: DenyCache
  readonly #failures: FailureLog

  constructor(options: LimiterOptions) {
    this.#options = resolveLimiterOptions(options)
    this.#lane = Lane.of(this.#options.store)
    this.policy = this.#lane.register(this.#options.policy)
    this.#denials = this.#lane.openCache(DENY_CACHE_ENTRIES, DENY_CACHE_LIFE_MS)
    this.#failures = new FailureLog(this.policy.name, this.#options.logger)
  }

  /** The store it counts in. */
  get store(): Store {
    return this.#options.store
  }

  /**
   * Charges a key, if that keeps it within the limit.
   *
   * Answers within `timeoutMs`. A denial is an answer; so is a store that fails (`outcome: 'degraded'`).
   *
   * @throws TypeError for an empty key or a wrong cost.
   */
  async hit(key: Key, options: HitOptions = {}): Promise<Decision> {
    checkOptionNames('a hit', options, ['cost'])
    const { cost = 1 } = options
    if (!Number.isSafeInteger(cost) || cost < 1 || cost > HIGHEST_COST) {
      throw optionError('cost', `a whole number from 1 to ${HIGHEST_COST}`, cost)
    }
    const { policy } = this
    const stored = storageKey(policy, key)
    const refused = this.#denials.refuse(stored, cost, performance.now())
    if (refused !== null) return decisionOf([limitStateOf(policy, keyText(key), refused)])

    try {
      const hit = { charges: [{ key: stored, policy }], cost }
      const { verdict, sentAt } = await this.#lane.batcher.submit(hit, this.#options.timeoutMs)
      const reading = verdict.readings[0] as Reading
      if (reading.denied && this.#lane.isCurrent(sentAt)) {
        this.#denials.remember(stored, policy, cost, reading, sentAt)
      }
      return decisionOf([limitStateOf(policy, keyText(key), reading)])
    } catch (error) {
      return this.#degrade(key, error)
    }
  }

  /**
   * The state of a key, as a hit of cost 1 would find it, counting nothing. Attempts refused from memory less than
   * a second ago may not be in it yet.
   *
   * @throws TypeError for an empty key.
   */
  async peek(key: Key): Promise<Decision> {
    const { policy } = this
    const charge = { key: storageKey(policy, key), policy }
    const { store, timeoutMs } = this.#options
    try {
      const [reading] = await withinDeadline(timeoutMs, (signal) => store.peek([charge], signal))
      return decisionOf([limitStateOf(policy, keyText(key), reading as Reading)])
    } catch (error) {
      return this.#degrade(key, error)
    }
  }

  /**
   * Forgets what was counted for a key. Other processes see it within a second.
   *
   * @throws TypeError for an empty key; StoreError when the store fails.
   */
  async reset(key: Key): Promise<void> {
    await this.#lane.reset(storageKey(this.policy, key))
  }

  #degrade(key: Key, error: unknown): Decision {
    const failure =
      error instanceof StoreError
        ? error
        : new StoreError('ERR_STORE_FAILED', 'The store failed', { cause: error })
    const allowed = this.#options.onStoreError === 'allow'
    this.#failures.report(failure, allowed)
    return degradedDecision(this.policy, keyText(key), allowed, failure)
  }
}
