import type { NextFunction, Request, Response } from 'express'
import { ProblemDocument } from 'http-problem-details'
import {
  BEHAVIOUR_OPTION_NAMES,
  type BehaviourOptions,
  resolveBehaviour,
} from '../limiter/behaviour-options.js'
import type { CalendarWindow } from '../limiter/calendar-options.js'
import { Decider } from '../limiter/decider.js'
import type { DegradedDecision, DeniedDecision } from '../limiter/decision.js'
import type { LeaseOptions } from '../limiter/lease-options.js'
import { checkCost, LIMIT_OPTION_NAMES, type LimitOptions } from '../limiter/limiter-options.js'
import type { Key } from '../limiter/storage-key.js'
import { checkBoolean, checkOptionNames, optionError } from '../stores/option-error.js'
import { type AddressKeyOptions, checkIpv6Subnet } from './address-key.js'
import { addressList } from './address-list.js'
import type { DenialOptions } from './denial.js'
import type { HeaderOptions, StandardHeaders } from './headers.js'
import { leaseOf } from './lease-of.js'
import { claimAddresses, LimitRule } from './limit-rule.js'
import { QUOTA_EXCEEDED } from './problem.js'

/** A value, or a function of the request that gives it, sync or async. */
export type PerRequest<T> = T | ((req: Request, res: Response) => T | Promise<T>)

/** Whose request it is. Runs before anything is awaited, so that a client who leaves still has a key. */
export type KeyFunction = (req: Request) => Key | Promise<Key>

/** Answers a request that is not let through. */
export type DenialHandler = (
  req: Request,
  res: Response,
  next: NextFunction,
  decision: DeniedDecision | DegradedDecision,
) => unknown

/** One limit on requests. Its options are those of `LimitOptions`, where the rule may depend on the request. */
export interface RequestLimitOptions
  extends Omit<LimitOptions, 'limit' | 'windowSeconds' | 'window' | 'name'> {
  /** Highest cost admitted in a window, as in `LimitOptions`. */
  readonly limit: PerRequest<number>
  /** Length of the window in seconds, as in `LimitOptions`. Give either this or `window`. */
  readonly windowSeconds?: PerRequest<number> | undefined
  /** The windows of a calendar, as in `LimitOptions`. */
  readonly window?: PerRequest<CalendarWindow> | undefined
  /** The policy's name, as in `LimitOptions`. Default `default`. */
  readonly name?: PerRequest<string> | undefined
  /**
   * The key to charge: a text such as `login:203.0.113.9`, or several parts, which never collide with others
   * (`['a:b', 'c']` is not `['a', 'b:c']`). May be async. Default: the client's address, IPv6 by its prefix.
   */
  readonly keyFn?: KeyFunction | undefined
}

/** What `rateLimit` does beside its limits. */
export interface RequestBehaviourOptions extends BehaviourOptions {
  /** What a request counts: a whole number from 1 to 1,000,000,000,000. Default 1. */
  readonly cost?: PerRequest<number> | undefined
  /** Lets a request through uncounted when it gives `true`, and only then (hazard 135). */
  readonly skip?: ((req: Request, res: Response) => boolean | Promise<boolean>) | undefined
  /** Addresses and CIDR ranges that are let through uncounted. */
  readonly allowList?: readonly string[] | undefined
  /** Addresses and CIDR ranges that are refused with 403. */
  readonly denyList?: readonly string[] | undefined
  /** Bits of an IPv6 address that make its key, 32 to 128, or a function of the request. Default 56. */
  readonly ipv6Subnet?: AddressKeyOptions['ipv6Subnet']
  /**
   * What happens to a request that has no address, as on a Unix socket, when the address is the key: `shared`
   * (default) counts all of them under one key, `deny` refuses them with 403. Either is warned of once.
   */
  readonly missingKey?: 'shared' | 'deny' | undefined
  /** Gives the hit back when the response was a success. Default false. An aborted response is none. */
  readonly skipSuccessfulRequests?: boolean | undefined
  /** Gives the hit back when the response was sent and no success. Default false. */
  readonly skipFailedRequests?: boolean | undefined
  /** Whether a response that was sent is a success. Default: its status is below 400. */
  readonly requestWasSuccessful?: ((req: Request, res: Response) => boolean | Promise<boolean>) | undefined
  /**
   * Answers instead of the built-in problem document; headers are set already. `decision.outcome` is `denied`, or
   * `degraded` when the store is down: then `decision.local` tells whether `onStoreError: 'local'` refused the request
   * for a limit, or `'deny'` because nothing is known.
   */
  readonly handler?: DenialHandler | undefined
  /** The body of a 429 instead of the built-in one: a text, an object sent as JSON, or a function that gives one. */
  readonly message?: unknown
  /** The status of a denial, 400 to 599. Default 429. */
  readonly statusCode?: number | undefined
  /** The `type` of the problem document, a URI. Default: quota-exceeded of the RateLimit draft. */
  readonly problemType?: string | undefined
  /** Where the decision is put on the request. Default `rateLimit`. */
  readonly requestPropertyName?: string | undefined
  /** Which RateLimit headers to send: `draft-11` (default), `draft-8`, `draft-7`, `draft-6`, or false for none. */
  readonly standardHeaders?: StandardHeaders | undefined
  /** Whether to send `X-RateLimit-*` as well. Default false. */
  readonly legacyHeaders?: boolean | undefined
}

/** Options of `rateLimit` with one limit. */
export interface RateLimitOptions extends RequestBehaviourOptions, RequestLimitOptions, LeaseOptions {}

/** Options of `rateLimit` with several limits, which a request is charged all together or not at all. */
export interface RateLimitsOptions extends RequestBehaviourOptions {
  /** The limits, by account and by address, per second and per hour: each with a `name` of its own. */
  readonly limits: readonly RequestLimitOptions[]
}

/** The options of a middleware, checked and complete. */
export interface ResolvedRateLimitOptions {
  /** The names of its limits, for people. */
  readonly label: string
  readonly decider: Decider
  readonly behaviour: ReturnType<typeof resolveBehaviour>
  readonly rules: readonly LimitRule[]
  readonly cost: PerRequest<number>
  readonly skip: RequestBehaviourOptions['skip']
  readonly isAllowed: (address: string | null) => boolean
  readonly isRefused: (address: string | null) => boolean
  readonly missingKey: 'shared' | 'deny'
  readonly giveBack: 'successful' | 'failed' | 'both' | 'never'
  readonly requestWasSuccessful: NonNullable<RequestBehaviourOptions['requestWasSuccessful']>
  readonly handler: DenialHandler | null
  readonly denial: DenialOptions
  readonly headers: HeaderOptions
  readonly requestPropertyName: string
}

const LIMIT_NAMES = [...LIMIT_OPTION_NAMES, 'keyFn']

/** The names in `RequestBehaviourOptions`. */
export const REQUEST_OPTION_NAMES: readonly string[] = [
  ...BEHAVIOUR_OPTION_NAMES,
  'cost',
  'skip',
  'allowList',
  'denyList',
  'ipv6Subnet',
  'missingKey',
  'skipSuccessfulRequests',
  'skipFailedRequests',
  'requestWasSuccessful',
  'handler',
  'message',
  'statusCode',
  'problemType',
  'requestPropertyName',
  'standardHeaders',
  'legacyHeaders',
]
const NAMES = [...LIMIT_NAMES, ...REQUEST_OPTION_NAMES, 'lease', 'limits']
const STANDARD_HEADERS: readonly unknown[] = ['draft-11', 'draft-8', 'draft-7', 'draft-6', false]

/** @throws TypeError with the option's name, the rule, and the value with its type. */
export function resolveRateLimitOptions(
  options: RateLimitOptions | RateLimitsOptions,
): ResolvedRateLimitOptions {
  checkOptionNames('rateLimit', options, NAMES)
  for (const name of ['skip', 'requestWasSuccessful', 'handler'] as const) {
    const value: unknown = options[name]
    if (value !== undefined && typeof value !== 'function') throw optionError(name, 'a function', value)
  }
  const { skipSuccessfulRequests = false, skipFailedRequests = false, legacyHeaders = false } = options
  checkBoolean('skipSuccessfulRequests', skipSuccessfulRequests)
  checkBoolean('skipFailedRequests', skipFailedRequests)
  checkBoolean('legacyHeaders', legacyHeaders)
  const { missingKey = 'shared', statusCode = 429, problemType = QUOTA_EXCEEDED } = options
  if (missingKey !== 'shared' && missingKey !== 'deny')
    throw optionError('missingKey', '`shared` or `deny`', missingKey)
  if (!Number.isInteger(statusCode) || statusCode < 400 || statusCode > 599) {
    throw optionError('statusCode', 'a whole number from 400 to 599', statusCode)
  }
  checkProblemType(problemType)
  const { requestPropertyName = 'rateLimit', standardHeaders = 'draft-11' } = options
  if (typeof requestPropertyName !== 'string' || requestPropertyName === '') {
    throw optionError('requestPropertyName', 'a text that is not empty', requestPropertyName)
  }
  const { cost = 1, allowList = [], denyList = [] } = options
  if (typeof cost !== 'function') checkCost(cost)
  if (options.ipv6Subnet !== undefined) checkIpv6Subnet(options.ipv6Subnet)
  if (!STANDARD_HEADERS.includes(standardHeaders)) {
    throw optionError(
      'standardHeaders',
      '`draft-11`, `draft-8`, `draft-7`, `draft-6` or false',
      standardHeaders,
    )
  }

  const behaviour = resolveBehaviour(options)
  const limits = limitsOf(options)
  const label = limits.map(({ name }) => (typeof name === 'string' ? name : 'default')).join(', ')
  const decider = new Decider(label, behaviour, leaseOf(options))
  const giveBack = skipSuccessfulRequests
    ? skipFailedRequests
      ? 'both'
      : 'successful'
    : skipFailedRequests
      ? 'failed'
      : 'never'
  const rules = limits.map((limit) => new LimitRule(limit, decider, { ipv6Subnet: options.ipv6Subnet }))
  const isAllowed = addressList('allowList', allowList)
  const isRefused = addressList('denyList', denyList)
  claimAddresses(behaviour.store, rules)
  return {
    label,
    decider,
    behaviour,
    rules,
    cost,
    skip: options.skip,
    isAllowed,
    isRefused,
    missingKey,
    giveBack,
    requestWasSuccessful: options.requestWasSuccessful ?? ((_req, res) => res.statusCode < 400),
    handler: options.handler ?? null,
    denial: { statusCode, message: options.message, problemType },
    headers: { standardHeaders, legacyHeaders },
    requestPropertyName,
  }
}

function limitsOf(options: RateLimitOptions | RateLimitsOptions): readonly RequestLimitOptions[] {
  if (!('limits' in options)) return [options]
  const { limits } = options
  const own = LIMIT_NAMES.find((name) => name in options)
  if (own !== undefined) {
    throw new TypeError(
      `Expected \`${own}\` inside of \`limits\`, where there are several limits, got it beside them`,
    )
  }
  if (!Array.isArray(limits) || limits.length === 0) {
    throw optionError('limits', 'an array with at least one limit', limits)
  }
  for (const limit of limits) checkOptionNames('a limit', limit, LIMIT_NAMES)
  return limits
}

/** http-problem-details refuses what it cannot parse; better now than with every denial. */
function checkProblemType(value: unknown): asserts value is string {
  try {
    if (typeof value !== 'string' || value === '') throw new TypeError('no URI')
    new ProblemDocument({ type: value, status: 429 })
  } catch {
    throw optionError('problemType', 'a URI', value)
  }
}
