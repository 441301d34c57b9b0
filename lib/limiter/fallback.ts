import type { Charge, Reading, Refund } from '../stores/store.js'
import { StoreError, type StoreErrorCode } from '../stores/store-error.js'
import { type Behaviour, isRule, type StoreErrorRule } from './behaviour-options.js'
import { storeErrorOf } from './breaker.js'
import type { HitContext, LimitedKey } from './decider.js'
import {
  type DegradedDecision,
  degradedDecision,
  type LimitState,
  limitStateOf,
  localDecision,
} from './decision.js'
import type { DenyCache } from './deny-cache.js'
import { FailureLog } from './failure-log.js'
import type { Lane } from './lane.js'
import { localCharge } from './local-limiter.js'
import { refundsOf } from './refunds-of.js'
import { keyText } from './storage-key.js'

/** What a hit was answered without the store, and what gives it back where this process counted it. */
export interface Degraded {
  readonly decision: DegradedDecision
  readonly refunds: readonly Refund[]
}

/** What a store reports that works but has too much to do, or others in its way. */
const BUSY: readonly StoreErrorCode[] = ['ERR_STORE_CAPACITY', 'ERR_STORE_CONFLICT']

/**
 * Answers for one limiter when its store does not, as `onStoreError` says.
 *
 * Clients can make a store busy by coming in numbers. So nobody is let through uncounted for that: what `onStoreError`
 * would allow is then limited by what this process counts.
 */
export class Fallback {
  readonly #behaviour: Behaviour
  readonly #lane: Lane
  readonly #denials: DenyCache
  readonly #failures: FailureLog

  /** @param denials - what the limiter remembers of its store's denials */
  constructor(name: string, behaviour: Behaviour, lane: Lane, denials: DenyCache) {
    this.#behaviour = behaviour
    this.#lane = lane
    this.#denials = denials
    this.#failures = new FailureLog(name, behaviour.logger)
  }

  async decide(
    keys: readonly LimitedKey[],
    charges: readonly Charge[],
    { cost, force = false, request }: HitContext,
    error: unknown,
  ): Promise<Degraded> {
    const failure = storeErrorOf(error)
    const rule = this.#ruleFor(failure, request)
    if (rule !== 'local') return { decision: this.#follow(rule, keys, failure), refunds: [] }

    const recalled = force ? [] : this.#recall(keys, charges, cost)
    if (recalled.length > 0) return { decision: localDecision(recalled, failure), refunds: [] }
    const locals = this.#localOf(charges)
    const { allowed, readings } = await this.#lane.local.decide({ charges: locals, cost, force })
    const decision = localDecision(statesOf(keys, locals, readings), failure)
    return { decision, refunds: allowed ? refundsOf(locals, readings, cost) : [] }
  }

  async peek(
    keys: readonly LimitedKey[],
    charges: readonly Charge[],
    error: unknown,
  ): Promise<DegradedDecision> {
    const failure = storeErrorOf(error)
    const rule = this.#ruleFor(failure, undefined)
    if (rule !== 'local') return this.#follow(rule, keys, failure)
    const recalled = this.#recall(keys, charges, 1)
    if (recalled.length > 0) return localDecision(recalled, failure)
    const locals = this.#localOf(charges)
    return localDecision(statesOf(keys, locals, await this.#lane.local.peek(locals)), failure)
  }

  #ruleFor(failure: StoreError, request: unknown): StoreErrorRule {
    const asked = this.#ask(failure, request)
    const rule = asked === 'allow' && isBusy(failure) ? 'local' : asked
    this.#failures.report(failure, rule)
    return rule
  }

  #ask(failure: StoreError, request: unknown): StoreErrorRule {
    const { onStoreError } = this.#behaviour
    if (typeof onStoreError !== 'function') return onStoreError
    try {
      const rule: unknown = onStoreError(failure, request)
      return isRule(rule) ? rule : 'deny'
    } catch {
      return 'deny'
    }
  }

  #follow(rule: 'allow' | 'deny', keys: readonly LimitedKey[], failure: StoreError): DegradedDecision {
    const { policy, key } = keys[0] as LimitedKey
    return degradedDecision(policy, keyText(key), rule === 'allow', failure)
  }

  /** The limits whose last denial by the store has not ended yet. */
  #recall(keys: readonly LimitedKey[], charges: readonly Charge[], cost: number): LimitState[] {
    const now = performance.now()
    return charges.flatMap(({ key, policy }, i) => {
      const reading = this.#denials.recall(key, policy, cost, now)
      return reading === null ? [] : [limitStateOf(policy, keyText((keys[i] as LimitedKey).key), reading)]
    })
  }

  #localOf(charges: readonly Charge[]): Charge[] {
    return charges.map((charge) => localCharge(charge, this.#behaviour.localShare))
  }
}

/** Whether the store is busy, or was when it was last asked. */
const isBusy = ({ code, cause }: StoreError): boolean =>
  BUSY.includes(code) ||
  (code === 'ERR_STORE_DOWN' && cause instanceof StoreError && BUSY.includes(cause.code))

const statesOf = (
  keys: readonly LimitedKey[],
  charges: readonly Charge[],
  readings: readonly Reading[],
): LimitState[] =>
  charges.map(({ policy }, i) =>
    limitStateOf(policy, keyText((keys[i] as LimitedKey).key), readings[i] as Reading),
  )
