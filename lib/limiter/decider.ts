import { withinDeadline } from '../stores/before-abort.js'
import { optionError } from '../stores/option-error.js'
import type { Charge, Policy, Reading, Refund } from '../stores/store.js'
import { StoreError } from '../stores/store-error.js'
import { publish } from './channels.js'
import {
  type Decision,
  decisionOf,
  degradedDecision,
  dryRunDecision,
  type LimitState,
  limitStateOf,
} from './decision.js'
import type { DenyCache } from './deny-cache.js'
import { FailureLog } from './failure-log.js'
import { Lane } from './lane.js'
import type { Behaviour, DecisionHook } from './limiter-options.js'
import { type Key, keyText, storageKey } from './storage-key.js'

/** A key under a limit. */
export interface LimitedKey {
  readonly policy: Policy
  readonly key: Key
}

/** What a hit is beside its keys. */
export interface HitContext {
  readonly cost: number
  /** Counts whatever the limits say: a penalty. */
  readonly force?: boolean
  /** The Express request, for hooks and channels. */
  readonly request?: unknown
}

/** The most keys whose denial one limiter remembers. */
const DENY_CACHE_ENTRIES = 10_000
/** How long it remembers one at the most, in milliseconds: how late a reset in another process may be seen. */
const DENY_CACHE_LIFE_MS = 1000

/**
 * Where the ways to hit meet: `Limiter` and the middleware. Asks the memory, then the store in a batch with others,
 * and turns what comes back, a failure too, into a decision.
 */
export class Decider {
  readonly #behaviour: Behaviour
  readonly #lane: Lane
  readonly #denials: DenyCache
  readonly #failures: FailureLog
  /** What an allowed decision took, until it is given back. */
  readonly #tickets = new WeakMap<
    Decision,
    { readonly refunds: readonly Refund[]; readonly resets: number }
  >()

  constructor(name: string, behaviour: Behaviour) {
    this.#behaviour = behaviour
    this.#lane = Lane.of(behaviour.store)
    this.#denials = this.#lane.openCache(DENY_CACHE_ENTRIES, DENY_CACHE_LIFE_MS)
    this.#failures = new FailureLog(name, behaviour.logger)
  }

  /** The policy as it must be used here. */
  register(policy: Policy): Policy {
    return this.#lane.register(policy)
  }

  /** Charges all keys or none of them. Never rejects for a denial or a store that fails. */
  async decide(keys: readonly LimitedKey[], context: HitContext): Promise<Decision> {
    const { cost, force = false, request } = context
    const charges = keys.map((each) => this.#charge(each))
    const refused = force ? [] : this.#refuse(keys, charges, cost)
    if (refused.length > 0) return this.#report(decisionOf(refused), request)

    const { resets } = this.#lane
    try {
      const hit = { charges, cost, force }
      const { verdict, sentAt } = await this.#lane.batcher.submit(hit, this.#behaviour.timeoutMs)
      const { allowed, readings } = verdict
      const states = readings.map((reading, i) => {
        const { key, policy } = charges[i] as Charge
        if (reading.denied && this.#lane.isCurrent(key, sentAt)) {
          this.#denials.remember(key, policy, cost, reading, sentAt)
        }
        return limitStateOf(policy, keyText((keys[i] as LimitedKey).key), reading)
      })
      const decision = this.#report(decisionOf(states), request)
      if (allowed) this.#tickets.set(decision, { refunds: refundsOf(charges, readings, cost), resets })
      return decision
    } catch (error) {
      return this.#report(this.#degrade(keys, error, request), request)
    }
  }

  /** The state of the keys, as a hit of cost 1 would find it, counting nothing. */
  async peek(keys: readonly LimitedKey[]): Promise<Decision> {
    const charges = keys.map((each) => this.#charge(each))
    const { store, timeoutMs } = this.#behaviour
    try {
      const readings = await withinDeadline(timeoutMs, (signal) => store.peek(charges, signal))
      const states = keys.map(({ policy, key }, i) =>
        limitStateOf(policy, keyText(key), readings[i] as Reading),
      )
      return this.#asBehaved(decisionOf(states))
    } catch (error) {
      return this.#asBehaved(this.#degrade(keys, error))
    }
  }

  /** Gives back what a decision took; false when it took nothing, or has been given back already. */
  async refund(decision: Decision): Promise<boolean> {
    if (typeof decision !== 'object' || decision === null)
      throw optionError('decision', 'a decision of this limiter', decision)
    const ticket = this.#tickets.get(decision)
    if (ticket === undefined) return false
    this.#tickets.delete(decision)
    const refunds = ticket.refunds.filter(({ key }) => !this.#lane.wasReset(key, ticket.resets))
    if (refunds.length === 0) return false
    await this.#lane.refund(refunds)
    return true
  }

  async block(keys: readonly LimitedKey[], seconds: number): Promise<void> {
    const { timeoutMs } = this.#behaviour
    for (const each of keys)
      await this.#lane.block(this.#charge(each), Math.round(seconds * 1_000_000), timeoutMs)
  }

  async reset(keys: readonly LimitedKey[]): Promise<void> {
    for (const each of keys) await this.#lane.reset(this.#charge(each).key)
  }

  #charge({ policy, key }: LimitedKey): Charge {
    return { key: storageKey(policy, key, this.#behaviour.hashKeys), policy }
  }

  #refuse(keys: readonly LimitedKey[], charges: readonly Charge[], cost: number): LimitState[] {
    const now = performance.now()
    const states: LimitState[] = []
    charges.forEach(({ key, policy }, i) => {
      const refused = this.#denials.refuse(key, policy, cost, now)
      if (refused !== null) states.push(limitStateOf(policy, keyText((keys[i] as LimitedKey).key), refused))
    })
    return states
  }

  #passes(error: StoreError, request: unknown): boolean {
    const { onStoreError } = this.#behaviour
    if (typeof onStoreError !== 'function') return onStoreError === 'allow'
    try {
      return onStoreError(error, request) === 'allow'
    } catch {
      return false
    }
  }

  #degrade(keys: readonly LimitedKey[], error: unknown, request?: unknown): Decision {
    const failure =
      error instanceof StoreError
        ? error
        : new StoreError('ERR_STORE_FAILED', 'The store failed', { cause: error })
    const allowed = this.#passes(failure, request)
    this.#failures.report(failure, allowed)
    const { policy, key } = keys[0] as LimitedKey
    return degradedDecision(policy, keyText(key), allowed, failure)
  }

  #asBehaved(decision: Decision): Decision {
    return this.#behaviour.dryRun ? dryRunDecision(decision) : decision
  }

  #report(decided: Decision, request: unknown): Decision {
    const { onDecision, onDenied, onDegraded } = this.#behaviour
    const decision = this.#asBehaved(decided)
    publish(decision, request)
    if (onDecision !== null) call(onDecision, decision, request)
    if (onDenied !== null && decision.outcome === 'denied') call(onDenied, decision, request)
    if (onDegraded !== null && decision.outcome === 'degraded') call(onDegraded, decision, request)
    return decision
  }
}

/** A key named by two charges of one hit was charged once. */
function refundsOf(charges: readonly Charge[], readings: readonly Reading[], cost: number): Refund[] {
  const refunds = new Map(
    charges.map(({ key, policy }, i) => [key, { key, policy, cost, at: (readings[i] as Reading).at }]),
  )
  return [...refunds.values()]
}

/** A hook can break no request, neither by throwing nor by rejecting. */
function call(hook: DecisionHook, decision: Decision, request: unknown): void {
  try {
    Promise.resolve(hook(decision, request)).catch(() => {})
  } catch {
    // As above.
  }
}
