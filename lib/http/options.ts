import type { NextFunction, Request, Response } from 'express'
import type { DegradedDecision, DeniedDecision } from '../limiter/decision.js'
import { Limiter } from '../limiter/limiter.js'
import { LIMITER_OPTION_NAMES, type LimiterOptions } from '../limiter/limiter-options.js'
import type { Key } from '../limiter/storage-key.js'
import { checkOptionNames, optionError } from '../stores/option-error.js'
import type { Store } from '../stores/store.js'
import { addressKey } from './address-key.js'

/** Whose request it is. Runs before anything is awaited, so that a client who leaves still has a key. */
export type KeyFunction = (req: Request) => Key | Promise<Key>

/** Answers a request that is not let through. */
export type DenialHandler = (
  req: Request,
  res: Response,
  next: NextFunction,
  decision: DeniedDecision | DegradedDecision,
) => unknown

/** Options of `rateLimit`: those of a `Limiter`, and what concerns HTTP. */
export interface RateLimitOptions extends LimiterOptions {
  /**
   * The key to charge: a text such as `login:203.0.113.9`, or several parts, which never collide with others
   * (`['a:b', 'c']` is not `['a', 'b:c']`). May be async. Default: the client's address, IPv6 by its /56 prefix.
   */
  readonly keyFn?: KeyFunction | undefined
  /**
   * Answers instead of the built-in problem document; headers are set already. `decision.outcome` is `denied`, or
   * `degraded` when `onStoreError` is `deny` and the store is down.
   */
  readonly handler?: DenialHandler | undefined
}

/** The options of a middleware, checked and complete. */
export interface ResolvedRateLimitOptions {
  readonly limiter: Limiter
  readonly keyFn: KeyFunction
  readonly handler: DenialHandler | null
}

/** Names of limiters without a `keyFn`, by store: two of one name would share the counters of every address. */
const addressLimiters = new WeakMap<Store, Set<string>>()

/** @throws TypeError with the option's name, the rule, and the value with its type. */
export function resolveRateLimitOptions(options: RateLimitOptions): ResolvedRateLimitOptions {
  checkOptionNames('rateLimit', options, [...LIMITER_OPTION_NAMES, 'keyFn', 'handler'])
  const { keyFn, handler, ...limiterOptions } = options
  if (keyFn !== undefined && typeof keyFn !== 'function') throw optionError('keyFn', 'a function', keyFn)
  if (handler !== undefined && typeof handler !== 'function')
    throw optionError('handler', 'a function', handler)
  const limiter = new Limiter(limiterOptions)
  if (keyFn === undefined) claimAddressKeys(limiter)
  return { limiter, keyFn: keyFn ?? addressKey, handler: handler ?? null }
}

function claimAddressKeys({ store, policy }: Limiter): void {
  let names = addressLimiters.get(store)
  if (names === undefined) {
    names = new Set()
    addressLimiters.set(store, names)
  }
  if (names.has(policy.name)) {
    throw new TypeError(
      `Two limiters on one store count by address under the \`name\` '${policy.name}' and would share their counters. Give each its own \`name\`, or a \`keyFn\`.`,
    )
  }
  names.add(policy.name)
}
