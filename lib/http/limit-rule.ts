import type { Request, Response } from 'express'
import { LRUCache } from 'lru-cache'
import type { Decider, LimitedKey } from '../limiter/decider.js'
import {
  checkLimit,
  checkName,
  checkWindowSeconds,
  DEFAULT_NAME,
  resolveLimit,
} from '../limiter/limiter-options.js'
import type { Key } from '../limiter/storage-key.js'
import { optionError } from '../stores/option-error.js'
import type { Policy, Store } from '../stores/store.js'
import { type AddressKeyOptions, addressKey } from './address-key.js'
import type { KeyFunction, PerRequest, RequestLimitOptions } from './options.js'

/** The most policies of one rule that are kept ready: plans and tenants, not users. */
const POLICIES = 1000

/** Names of rules that count by address, by store: two of one name would share the counters of every address. */
const addressRules = new WeakMap<Store, Set<string>>()

/** One limit of a middleware: its policy and its key, which may both depend on the request. */
export class LimitRule {
  readonly keyFn: KeyFunction
  /** Whether the key is the client's address. */
  readonly byAddress: boolean
  /** The one policy of a rule that depends on no request. */
  readonly policy: Policy | null
  readonly #options: RequestLimitOptions
  readonly #decider: Decider
  readonly #policies = new LRUCache<string, Policy>({ max: POLICIES })

  /** As much of the policy as the stored keys depend on, where that depends on no request. */
  readonly keyPolicy: Policy | null
  /** The name under which addresses are counted, if they are, and it depends on no request. */
  readonly addressName: string | null

  /** @throws TypeError for a wrong option. */
  constructor(options: RequestLimitOptions, decider: Decider, address: AddressKeyOptions) {
    const { keyFn, limit, windowSeconds, window, name = DEFAULT_NAME } = options
    if (keyFn !== undefined && typeof keyFn !== 'function') throw optionError('keyFn', 'a function', keyFn)
    this.#options = options
    this.#decider = decider
    this.byAddress = keyFn === undefined
    this.keyFn = keyFn ?? ((req) => addressKey(req, address))
    // What is fixed is checked now, also where the rest depends on the request.
    const fixed = resolveLimit({
      ...options,
      limit: isFunction(limit) ? 0 : limit,
      windowSeconds: isFunction(windowSeconds) ? 1 : windowSeconds,
      window: isFunction(window) ? 'day' : window,
      name: isFunction(name) ? DEFAULT_NAME : name,
    })
    const isStatic = ![limit, windowSeconds, window, name].some(isFunction)
    this.policy = isStatic ? decider.register(fixed) : null
    this.keyPolicy = [windowSeconds, window, name].some(isFunction) ? null : fixed
    this.addressName = this.byAddress && !isFunction(name) ? name : null
  }

  /** The key under the policy of this request, at once where neither has to be waited for. */
  of(req: Request, res: Response): LimitedKey | Promise<LimitedKey> {
    // The key is asked for first, before anything is awaited.
    const key = this.keyFn(req)
    return this.policy === null || isPromise(key)
      ? this.#when(key, this.policy ?? this.#policyOf(req, res))
      : { policy: this.policy, key }
  }

  /** Waits for both together, so that whichever rejects first, the other is listened to as well. */
  async #when(key: Key | Promise<Key>, policy: Policy | Promise<Policy>): Promise<LimitedKey> {
    const [settledKey, settledPolicy] = await Promise.all([key, policy])
    return { policy: settledPolicy, key: settledKey }
  }

  async #policyOf(req: Request, res: Response): Promise<Policy> {
    const { limit, windowSeconds, window, name = DEFAULT_NAME } = this.#options
    const values = {
      limit: await ask(limit),
      windowSeconds: windowSeconds === undefined ? undefined : await ask(windowSeconds),
      window: window === undefined ? undefined : await ask(window),
      name: await ask(name),
    }
    // A function that gives no limit must not become "no limit" (hazard 137).
    checkLimit(values.limit)
    if (window === undefined) checkWindowSeconds(values.windowSeconds)
    else if (values.window === undefined) throw optionError('window', 'a calendar window', values.window)
    checkName(values.name)
    const id = `${values.name} ${values.limit} ${values.windowSeconds ?? JSON.stringify(values.window)}`
    let policy = this.#policies.get(id)
    if (policy === undefined) {
      policy = this.#decider.register(resolveLimit({ ...this.#options, ...values }))
      this.#policies.set(id, policy)
    }
    return policy

    function ask<T>(value: PerRequest<T>): T | Promise<T> {
      return isFunction(value)
        ? (value as (req: Request, res: Response) => T | Promise<T>)(req, res)
        : (value as T)
    }
  }
}

const isPromise = (value: Key | Promise<Key>): value is Promise<Key> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === 'function'

const isFunction = (value: unknown): value is (...values: never[]) => unknown => typeof value === 'function'

/**
 * Takes the names under which rules count addresses. The last step of a construction: one that fails takes none.
 *
 * @throws TypeError when two rules on the store would share the counters of every address.
 */
export function claimAddresses(store: Store, rules: readonly LimitRule[]): void {
  const taken = new Set(addressRules.get(store))
  for (const { addressName } of rules) {
    if (addressName === null) continue
    if (taken.has(addressName)) {
      throw new TypeError(
        `Two limits on one store count by address under the \`name\` '${addressName}' and would share their counters. Give each its own \`name\`, or a \`keyFn\`.`,
      )
    }
    taken.add(addressName)
  }
  addressRules.set(store, taken)
}
