import { checkBoolean, checkOptionNames, optionError } from '../stores/option-error.js'
import type { Algorithm, Calendar, Policy } from '../stores/store.js'
import {
  BEHAVIOUR_OPTION_NAMES,
  type Behaviour,
  type BehaviourOptions,
  resolveBehaviour,
} from './behaviour-options.js'
import { type CalendarWindow, longestSeconds, resolveCalendar } from './calendar-options.js'
import { checkLease, type LeaseOptions } from './lease-options.js'

/** One limit: how much, in what time, counted how. */
export interface LimitOptions {
  /** Highest cost admitted in a window: a whole number from 0, which denies everything, to 1,000,000,000,000. */
  readonly limit: number
  /** Length of the window in seconds: 0.001 to 31,536,000 (a year). Give either this or `window`. */
  readonly windowSeconds?: number | undefined
  /**
   * The windows of a calendar instead of a length: `'day'`, `'month'`, or `{ every: 'month', timeZone: 'Europe/Berlin' }`.
   * They count as a `fixed-window` does, attempts, from the first instant of a day of that time zone to the first of the
   * next, by the store's clock.
   */
  readonly window?: CalendarWindow | undefined
  /**
   * The policy's name in headers and problems, and the namespace of its keys: letters, digits and `._-`, up to 64.
   * Default `default`. Limiters of one name on one store share what they count of equal keys.
   */
  readonly name?: string | undefined
  /** Default `sliding-window`, and with `window` always `fixed-window`. */
  readonly algorithm?: Algorithm | undefined
  /** How long admitted events are kept past their window, in seconds, as an audit log: 0 to 31,536,000. Default 0. */
  readonly retainSeconds?: number | undefined
  /** Whether a `fixed-window` policy also writes its admitted hits to the event log. Default false. */
  readonly audit?: boolean | undefined
}

/** What a `Limiter` is made of. */
export interface LimiterOptions extends LimitOptions, BehaviourOptions, LeaseOptions {}

export const LIMIT_OPTION_NAMES = [
  'limit',
  'windowSeconds',
  'window',
  'name',
  'algorithm',
  'retainSeconds',
  'audit',
] as const

/** The name of a limiter that was given none. */
export const DEFAULT_NAME = 'default'

/** The highest limit and cost. */
export const HIGHEST_LIMIT = 1_000_000_000_000
const YEAR_SECONDS = 31_536_000

/** @throws TypeError with the option's name, the rule, and the value with its type. */
export function resolveLimit(options: LimitOptions): Policy {
  const { limit, window, name = DEFAULT_NAME, retainSeconds = 0, audit = false } = options
  checkLimit(limit)
  const { windowSeconds, calendar } = lengthOf(options)
  const { algorithm = window === undefined ? 'sliding-window' : 'fixed-window' } = options
  checkSeconds('retainSeconds', retainSeconds, 0)
  checkName(name)
  if (algorithm !== 'sliding-window' && algorithm !== 'fixed-window') {
    throw optionError('algorithm', '`sliding-window` or `fixed-window`', algorithm)
  }
  if (calendar !== undefined && algorithm === 'sliding-window')
    throw optionError('algorithm', '`fixed-window` or left out, where there is a `window`', algorithm)
  checkBoolean('audit', audit)
  return {
    name,
    limit,
    windowSeconds,
    windowMicros: Math.round(windowSeconds * 1_000_000),
    algorithm,
    calendar,
    keepMicros: Math.round((windowSeconds + retainSeconds) * 1_000_000),
    audit,
  }
}

function lengthOf({ windowSeconds, window }: LimitOptions): {
  windowSeconds: number
  calendar: Calendar | undefined
} {
  if (window === undefined) {
    checkWindowSeconds(windowSeconds)
    return { windowSeconds, calendar: undefined }
  }
  if (windowSeconds !== undefined)
    throw optionError('windowSeconds', 'left out where there is a `window`', windowSeconds)
  const calendar = resolveCalendar(window)
  return { windowSeconds: longestSeconds(calendar), calendar }
}

/** @throws TypeError with the option's name, the rule, and the value with its type. */
export function resolveLimiterOptions(options: LimiterOptions): {
  policy: Policy
  behaviour: Behaviour
  lease: number | null
} {
  checkOptionNames('the limiter', options, [...LIMIT_OPTION_NAMES, ...BEHAVIOUR_OPTION_NAMES, 'lease'])
  const { lease } = options
  const behaviour = resolveBehaviour(options)
  const policy = resolveLimit(options)
  if (lease !== undefined) checkLease(lease, policy.limit)
  return { behaviour, policy, lease: lease ?? null }
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
