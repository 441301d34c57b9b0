import { isLogged } from '../stores/is-logged.js'
import { optionError } from '../stores/option-error.js'
import type { Charge, Policy, Reading } from '../stores/store.js'
import type { Behaviour, DecisionHook } from './behaviour-options.js'
import type { StoreHealth } from './breaker.js'
import { publish } from './channels.js'
import { type Decision, decisionOf, dryRunDecision, type LimitState, limitStateOf } from './decision.js'
import type { DenyCache } from './deny-cache.js'
import { Fallback } from './fallback.js'
import { Lane } from './lane.js'
import type { LeaseBook } from './lease-book.js'
import { refundsOf } from './refunds-of.js'
import { type Key, keyText, type StoredKey, storageKey } from './storage-key.js'
import { type Ticket, Ticketed } from './ticketed.js'

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

/** A hit that is being decided. */
interface Asked {
  readonly keys: readonly LimitedKey[]
  readonly charges: readonly Charge[]
  readonly context: HitContext
  /** When it was asked for, on the monotonic clock, in milliseconds. */
  readonly askedAt: number
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
  readonly #leases: LeaseBook | null
  readonly #fallback: Fallback

  /** @param lease - units that are taken ahead at a time, or null to ask the store about each hit */
  constructor(name: string, behaviour: Behaviour, lease: number | null) {
    this.#behaviour = behaviour
    this.#lane = Lane.of(behaviour.store)
    this.#denials = this.#lane.openCache(DENY_CACHE_ENTRIES, DENY_CACHE_LIFE_MS)
    this.#leases = lease === null ? null : this.#lane.openLeases(lease)
    this.#fallback = new Fallback(name, behaviour, this.#lane, this.#denials)
    this.#lane.batcher.breaker.tell(behaviour.logger)
  }

  get storeHealth(): StoreHealth {
    return this.#lane.storeHealth
  }

  /** The policy as it must be used here. */
  register(policy: Policy): Policy {
    return this.#lane.register(policy)
  }

  /**
   * Charges all keys or none of them; at once where memory knows that they are refused. Never rejects for a denial or a
   * store that fails.
   */
  decide(keys: readonly LimitedKey[], context: HitContext): Decision | Promise<Decision> {
    const charges = keys.map((each) => this.#charge(each))
    const asked = { keys, charges, context, askedAt: performance.now() }
    return this.#recall(asked, asked.askedAt) ?? this.#ask(asked)
  }

  /** What the store decides, when it is the hit's turn to be sent. */
  async #ask(asked: Asked): Promise<Decision> {
    const { keys, charges, context, askedAt } = asked
    const { cost, force = false, request } = context
    const { timeoutMs, maxPending } = this.#behaviour
    const hit = { charges, cost, force }
    const hits = this.#leases ?? this.#lane.batcher
    let deadline = askedAt + timeoutMs
    for (;;) {
      const turn = hits.turn(hit, deadline, maxPending)
      if (turn === null) break
      deadline += await turn
      const refused = this.#recall(asked, performance.now())
      if (refused !== null) return refused
    }

    const { resets } = this.#lane
    try {
      const { verdict, sentAt } = await hits.submit(hit, deadline, maxPending, askedAt)
      if (force) for (const { key } of charges) this.#lane.endLeases(key)
      const { allowed, readings } = verdict
      const states = readings.map((reading, i) => {
        const { key, policy } = charges[i] as Charge
        if (!reading.denied) this.#denials.forget(key)
        else if (this.#lane.isCurrent(key, sentAt)) {
          this.#denials.remember(key, policy, cost, reading, sentAt)
        }
        return limitStateOf(policy, keyText((keys[i] as LimitedKey).key), reading)
      })
      const refunds = allowed ? refundsOf(charges, readings, cost) : []
      return this.#report(decisionOf(states), request, askedAt, {
        issuer: this,
        refunds,
        resets,
        local: false,
      })
    } catch (error) {
      const { decision: decided, refunds } = await this.#fallback.decide(keys, charges, context, error)
      return this.#report(decided, request, askedAt, { issuer: this, refunds, resets, local: true })
    }
  }

  /** The state of the keys, as a hit of cost 1 would find it, counting nothing. */
  async peek(keys: readonly LimitedKey[]): Promise<Decision> {
    const charges = keys.map((each) => this.#charge(each))
    const views = charges.map(({ key }) => this.#leases?.peeking(key))
    try {
      const readings = await this.#lane.peek(charges, this.#behaviour.timeoutMs)
      const states = keys.map(({ policy, key }, i) => {
        const reading = readings[i] as Reading
        return limitStateOf(policy, keyText(key), views[i]?.(reading) ?? reading)
      })
      return this.#asBehaved(decisionOf(states))
    } catch (error) {
      return this.#asBehaved(await this.#fallback.peek(keys, charges, error))
    }
  }

  /** Gives back what a decision took; false when it took nothing, or has been given back already. */
  async refund(decision: Decision): Promise<boolean> {
    if (typeof decision !== 'object' || decision === null)
      throw optionError('decision', 'a decision of this limiter', decision)
    const ticket = Ticketed.take(decision, this)
    if (ticket === null) return false
    if (ticket.local) {
      await this.#lane.local.refund(ticket.refunds)
      return true
    }
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

  /** The keys as the store has them. */
  storedKeys(keys: readonly LimitedKey[]): StoredKey[] {
    return keys.map((each) => {
      const { name } = each.policy
      return { name, key: this.#charge(each).key, isLogged: isLogged(each.policy) }
    })
  }

  #charge({ policy, key }: LimitedKey): Charge {
    return { key: storageKey(policy, key, this.#behaviour.hashKeys), policy }
  }

  /** The denial that memory knows of; null when the store must decide. */
  #recall({ keys, charges, context, askedAt }: Asked, now: number): Decision | null {
    const { cost, force = false, request } = context
    if (force) return null
    const states: LimitState[] = []
    charges.forEach(({ key, policy }, i) => {
      const refused = this.#denials.refuse(key, policy, cost, now)
      if (refused !== null) states.push(limitStateOf(policy, keyText((keys[i] as LimitedKey).key), refused))
    })
    return states.length === 0 ? null : this.#report(decisionOf(states), request, askedAt)
  }

  #asBehaved(decision: Decision): Decision {
    return this.#behaviour.dryRun ? dryRunDecision(decision) : decision
  }

  #report(decided: Decision, request: unknown, askedAt: number, ticket?: Ticket): Decision {
    const { onDecision, onDenied, onDegraded, store } = this.#behaviour
    const decision = this.#asBehaved(decided)
    if (ticket !== undefined && ticket.refunds.length > 0) Ticketed.put(decision, ticket)
    publish(decision, request, store, askedAt)
    if (onDecision !== null) call(onDecision, decision, request)
    if (onDenied !== null && decision.outcome === 'denied') call(onDenied, decision, request)
    if (onDegraded !== null && decision.outcome === 'degraded') call(onDegraded, decision, request)
    return decision
  }
}

/** A hook can break no request, neither by throwing nor by rejecting. */
function call(hook: DecisionHook, decision: Decision, request: unknown): void {
  try {
    Promise.resolve(hook(decision, request)).catch(() => {})
  } catch {
    // As above.
  }
}
