import type { AllowedDecision, Decision, DeniedDecision } from '../limiter/decision.js'
import { Limiter } from '../limiter/limiter.js'
import { resolveLimiterOptions } from '../limiter/limiter-options.js'
import { resetNamespace } from '../limiter/reset-namespace.js'
import { checkOptionNames, optionError } from '../stores/option-error.js'
import type { Store } from '../stores/store.js'
import {
  type ExpressRateLimitOptions,
  type ExpressRateLimitStoreOptions,
  givesBack,
  isSameRule,
  limiterOptionsFor,
  STORE_OPTION_NAMES,
  UNTOLD,
} from './express-rate-limit-options.js'
import { type TakenHit, TakenHits } from './taken-hits.js'

/** What express-rate-limit is told of a key. */
export interface ExpressRateLimitCount {
  readonly totalHits: number
  readonly resetTime: Date
}

/** A store in the form that express-rate-limit 6 and later take. */
export interface ExpressRateLimitStore {
  /** False: processes share what they count. */
  readonly localKeys: boolean
  /** `name:`, with which its keys begin in the store. */
  readonly prefix: string
  /**
   * Called by express-rate-limit with its options. Does no I/O.
   *
   * @throws TypeError for a `windowMs` or `limit` that the store cannot keep, and for other rules than the first time;
   *   then every `increment` rejects with it, as express-rate-limit only logs what `init` throws.
   */
  init(options: ExpressRateLimitOptions): void
  /**
   * Counts a hit, or finds that the key is over its limit: then `totalHits` is above it, and nothing of a sliding
   * window is taken. `resetTime` is, for a hit that passes, when it stops counting; else when the next one can pass.
   *
   * @throws StoreError when the store does not answer within `timeoutMs`; at once while it is known to be down.
   */
  increment(key: string): Promise<ExpressRateLimitCount>
  /**
   * Gives back the hit that this request has taken, if it took one, and it still counts. Never rejects: where the store
   * fails the hit stays counted. Not every release of express-rate-limit listens, and Node.js ends a process for a
   * rejection that nobody hears.
   */
  decrement(key: string): Promise<void>
  /** Forgets what was counted for a key. Other processes see it within a second. */
  resetKey(key: string): Promise<void>
  /** Forgets all keys of this limiter, one after the other. express-rate-limit never calls it. */
  resetAll(): Promise<void>
  /** What is counted of a key; undefined for nothing. `resetTime` is when the next hit can pass, or the oldest leaves. */
  get(key: string): Promise<ExpressRateLimitCount | undefined>
}

/** The names that are taken, by store. */
const names = new WeakMap<Store, Set<string>>()

/**
 * A store for express-rate-limit 6 and later on a store of this package: exact over all processes that share it. For
 * applications that keep express-rate-limit; `rateLimit` of this package does more, and docs/migrating.md tells what
 * differs.
 *
 * Its failures reject, so that express-rate-limit's `passOnStoreError` decides. They are never later than `timeoutMs`,
 * and come at once while the store is down. Closing the store is up to you: it may serve other limiters.
 *
 * @example
 * import { rateLimit } from 'express-rate-limit'
 * const store = new MysqlStore({ uri: process.env.DATABASE_URL })
 * app.use(rateLimit({ windowMs: 60_000, limit: 100, store: toExpressRateLimitStore(store, { name: 'global' }) }))
 *
 * @throws TypeError for a wrong or unknown option, and for a `name` that is taken on this store.
 */
export function toExpressRateLimitStore(
  store: Store,
  options: ExpressRateLimitStoreOptions,
): ExpressRateLimitStore {
  checkOptionNames('toExpressRateLimitStore', options, STORE_OPTION_NAMES)
  const { name } = options
  if (name === undefined) throw optionError('name', 'the name of a limiter', name)
  resolveLimiterOptions(limiterOptionsFor(store, options, UNTOLD))
  const taken = names.get(store) ?? new Set()
  if (taken.has(name)) {
    throw new TypeError(
      `The \`name\` '${name}' is taken on this store. Give each limiter its own, or they would share their counters.`,
    )
  }
  names.set(store, taken.add(name))
  return new SharedStore(store, options)
}

/** Its name stands in warnings of express-rate-limit. */
class SharedStore implements ExpressRateLimitStore {
  readonly localKeys = false
  readonly prefix: string
  readonly #store: Store
  readonly #options: ExpressRateLimitStoreOptions
  #told = UNTOLD
  #mistake: TypeError | null = null
  #limiter: Limiter
  #taken = new TakenHits(false)

  constructor(store: Store, options: ExpressRateLimitStoreOptions) {
    this.prefix = `${options.name}:`
    this.#store = store
    this.#options = options
    this.#limiter = new Limiter(limiterOptionsFor(store, options, UNTOLD))
  }

  init(options: ExpressRateLimitOptions): void {
    if (this.#told !== UNTOLD && isSameRule(this.#told, options)) return
    try {
      if (this.#told !== UNTOLD) {
        throw new TypeError(
          'Two limiters of express-rate-limit have one store and different rules: call toExpressRateLimitStore for each',
        )
      }
      this.#limiter = new Limiter(limiterOptionsFor(this.#store, this.#options, options))
      this.#taken = new TakenHits(givesBack(options))
      this.#told = options
    } catch (error) {
      // express-rate-limit logs it and goes on. What does not limit must not look as if it did.
      this.#mistake = error as TypeError
      throw error
    }
  }

  // Not async: the caller's context is entered before anything is awaited.
  increment(key: string): Promise<ExpressRateLimitCount> {
    return this.#count(this.#taken.begin(String(key)))
  }

  async decrement(key: string): Promise<void> {
    const decision = this.#taken.giveBack(String(key))
    // The response is sent, and a hit that stays counted is the safe side.
    if (decision !== null) await this.#limiter.refund(decision).catch(() => {})
  }

  async resetKey(key: string): Promise<void> {
    this.#taken.forget(String(key))
    await this.#limiter.reset(keyOf(key))
  }

  async resetAll(): Promise<void> {
    this.#taken.forgetAll()
    await resetNamespace(this.#store, this.#limiter.policy)
  }

  async get(key: string): Promise<ExpressRateLimitCount | undefined> {
    this.#checkRules()
    const decision = answered(await this.#limiter.peek(keyOf(key)))
    if (decision.outcome === 'denied') return { totalHits: decision.used, resetTime: this.#endOf(decision) }
    // A key whose hits were all given back is known, with 0; one that was reset is not.
    if (decision.used === 0 && !this.#taken.knows(String(key))) return undefined
    return { totalHits: decision.used, resetTime: inMillis(decision.resetSeconds * 1000) }
  }

  async #count(hit: TakenHit): Promise<ExpressRateLimitCount> {
    this.#checkRules()
    const decision = answered(await this.#limiter.hit(keyOf(hit.key)))
    const { outcome, used } = decision
    const { limit, windowSeconds } = this.#limiter.policy
    const resetTime = this.#endOf(decision)
    if (outcome === 'denied') return { totalHits: Math.max(used, limit + 1), resetTime }
    this.#taken.took(hit, decision, performance.now() + windowSeconds * 1000)
    return { totalHits: used, resetTime }
  }

  /**
   * When a hit that was refused could pass. Else when the hit stops counting, and not when the oldest of a sliding
   * window does: nothing is given back after this time, nor is the count 0 before it.
   */
  #endOf({ outcome, retryAfterSeconds, resetSeconds }: AllowedDecision | DeniedDecision): Date {
    const { algorithm, windowSeconds } = this.#limiter.policy
    if (outcome === 'denied') return inMillis((retryAfterSeconds ?? windowSeconds) * 1000)
    return inMillis((algorithm === 'fixed-window' ? resetSeconds : windowSeconds) * 1000)
  }

  #checkRules(): void {
    if (this.#mistake !== null) throw this.#mistake
  }
}

/** express-rate-limit compares it with this process's clock: so it counts from there, whatever the database's says. */
const inMillis = (millis: number): Date => new Date(Date.now() + millis)

/** What is no text becomes one, as where other stores put it behind a prefix. An empty one is a key there. */
const keyOf = (key: unknown): string | [string] => (String(key) === '' ? [''] : String(key))

/** @throws StoreError when the store has not answered. */
function answered(decision: Decision): AllowedDecision | DeniedDecision {
  if (decision.outcome === 'degraded') throw decision.error
  return decision
}
