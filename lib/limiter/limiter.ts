import { checkOptionNames } from '../stores/option-error.js'
import type { Policy, Store } from '../stores/store.js'
import type { StoreHealth } from './breaker.js'
import { Decider, type LimitedKey } from './decider.js'
import type { Decision } from './decision.js'
import { checkCost, checkSeconds, type LimiterOptions, resolveLimiterOptions } from './limiter-options.js'
import type { Key, StoredKey } from './storage-key.js'

/** What a hit may say beside its key. */
export interface HitOptions {
  /** What the hit counts: a whole number from 1 to 1,000,000,000,000. Default 1. */
  readonly cost?: number | undefined
}

/**
 * A limit on a store, without Express: for jobs, sockets and other frameworks.
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
  /** The store it counts in. */
  readonly store: Store
  readonly #decider: Decider

  constructor(options: LimiterOptions) {
    const { policy, behaviour, lease } = resolveLimiterOptions(options)
    this.#decider = new Decider(policy.name, behaviour, lease)
    this.policy = this.#decider.register(policy)
    this.store = behaviour.store
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
    checkCost(cost)
    return this.#decider.decide(this.#of(key), { cost })
  }

  /**
   * The state of a key, as a hit of cost 1 would find it, counting nothing. Attempts refused from memory less than
   * a second ago may not be in it yet.
   *
   * @throws TypeError for an empty key.
   */
  async peek(key: Key): Promise<Decision> {
    return this.#decider.peek(this.#of(key))
  }

  /**
   * Counts a cost whatever the limit says, as a penalty: the key is denied until enough of it has left the window. No
   * window counts more than 1,000,000,000,000 beyond its limit.
   *
   * @throws TypeError for an empty key or a wrong cost.
   */
  async penalize(key: Key, cost: number): Promise<Decision> {
    checkCost(cost)
    return this.#decider.decide(this.#of(key), { cost, force: true })
  }

  /**
   * Gives back exactly the hit that an allowed decision of this limiter took, if it still counts: never below zero,
   * never another window's, never twice. Resolves with false when there was nothing to give back. A hit of a sliding
   * window after which its key has 20,000 later events may stay counted.
   *
   * @throws StoreError when the store fails.
   */
  async refund(decision: Decision): Promise<boolean> {
    return this.#decider.refund(decision)
  }

  /**
   * Denies everything on a key for some seconds, 0.001 to 31,536,000, from now on. A longer block that is there
   * stays; `reset` ends it.
   *
   * @throws TypeError for an empty key or wrong seconds; StoreError when the store fails.
   */
  async block(key: Key, seconds: number): Promise<void> {
    checkSeconds('seconds', seconds, 0.001)
    await this.#decider.block(this.#of(key), seconds)
  }

  /**
   * Forgets what was counted for a key, and its block. Other processes see it within a second: until then they may
   * refuse from memory, or admit what they hold of a `lease`.
   *
   * @throws TypeError for an empty key; StoreError when the store fails.
   */
  async reset(key: Key): Promise<void> {
    await this.#decider.reset(this.#of(key))
  }

  /**
   * The key as the store has it, in the column `rkey`, for `usage` and for queries of your own: one for each limit.
   *
   * @throws TypeError for an empty key.
   */
  storedKeys(key: Key): readonly StoredKey[] {
    return this.#decider.storedKeys(this.#of(key))
  }

  /**
   * How this limiter's store is, as this process sees it: what all limiters on it share.
   *
   * @example
   * if (limiter.storeHealth.state !== 'closed') console.log(`limits do not hold since ${limiter.storeHealth.since}`)
   */
  get storeHealth(): StoreHealth {
    return this.#decider.storeHealth
  }

  #of(key: Key): [LimitedKey] {
    return [{ policy: this.policy, key }]
  }
}
