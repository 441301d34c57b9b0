import { type Account, type Head, instantOf, stampOf, type WindowStart } from './account.js'
import type { Demand } from './demand.js'
import { windowEndAt, windowStartAt } from './fixed-window.js'
import { addToTotal, countedSince } from './running-total.js'
import type { Policy, Reading, Refusal } from './store.js'

/** What must be written for one key, all in the same transaction. */
export interface KeyWrite {
  readonly key: string
  readonly head: Head
  /** When the whole key may be swept. Moves in steps of a quarter span, so as to spare its index. */
  readonly expiresAt: number
  readonly event: { readonly ts: number; readonly hits: number; readonly total: number } | null
  /** Delete events with `after < ts <= upTo`. */
  readonly prune: { readonly after: number; readonly upTo: number } | null
}

/** A denial whose waiting time needs one more read: when enough of the window's oldest events leave it. */
export interface RetryLookup {
  readonly key: string
  /** Only events later than this are inside the window. */
  readonly after: number
  /** The running total before the window's first event. */
  readonly base: number
  /** How much must leave. Running totals go round, so it is compared with what was counted since `base`. */
  readonly excess: number
  /** Tells the reading when that event happened. */
  readonly resolve: (ts: number) => void
  /** Tells the reading the longest wait there can be. */
  readonly giveUp: () => void
}

/**
 * A head that is swept no longer holds back a clock that steps back. So it stays for a minute more than it counts:
 * steps of a clock that is kept by NTP are shorter.
 */
const CLOCK_STEP_MICROS = 60_000_000

/**
 * The most that a window counts beyond its limit, by denied attempts or by penalties: at any rate, and sums that stay exact
 * in JavaScript.
 */
const MOST_BEYOND_LIMIT = 1_000_000_000_000

/** One key while a batch is being settled: what was read, plus what the batch has added so far. */
export class SettlingKey {
  readonly #account: Account
  readonly #demand: Demand
  /** The instant of the batch for this key. */
  readonly at: number
  /** The time under which all that the batch admits of it is stored: one event, so the latest lease decides. */
  readonly stamp: number
  /** Cost admitted by this batch (sliding), or attempts counted by it (fixed). */
  added = 0
  /** Cost admitted by this batch that goes to the event log. */
  logged = 0

  constructor(account: Account, demand: Demand) {
    this.#account = account
    this.#demand = demand
    this.at = instantOf(account.head, account.now)
    this.stamp = stampOf(account.head, this.at, demand.leaseMicros)
  }

  #sliding(policy: Policy): WindowStart {
    const window = this.#account.windows.get(policy.windowMicros)
    if (window === undefined) throw new Error(`window of ${policy.windowMicros} µs was not read`)
    return window
  }

  /** Cost inside the policy's window before this batch. */
  #before(policy: Policy): number {
    const { head } = this.#account
    if (policy.algorithm === 'fixed-window') {
      return head.memoFirst === windowStartAt(policy, this.at) ? head.total - head.memoBase : 0
    }
    const { first, base } = this.#sliding(policy)
    if (first === 0) return 0
    const counted = countedSince(head.total, base)
    // Events older than their head: somebody deleted the head by hand. Then all that the new head counted is inside.
    return counted >= 0 ? counted : head.total
  }

  /** Whether a hit of this cost must be denied: the key is blocked, or the limit does not allow it. */
  denies(policy: Policy, cost: number): boolean {
    return this.#blockedMicros() > 0 || this.used(policy) + cost > policy.limit
  }

  #blockedMicros(): number {
    return this.#account.head.blocked - this.#account.now
  }

  used(policy: Policy): number {
    return this.#before(policy) + this.added
  }

  /** How many units more fit into the policy's window. */
  room(policy: Policy): number {
    return policy.limit - this.used(policy)
  }

  read(policy: Policy, denied: boolean): Reading {
    const { now } = this.#account
    const used = this.used(policy)
    if (policy.algorithm === 'fixed-window') {
      const untilEnd = windowEndAt(policy, this.at) - now
      return {
        denied,
        used,
        retryMicros: denied ? untilEnd : 0,
        resetMicros: untilEnd,
        at: this.at,
        windowStart: windowStartAt(policy, this.at),
      }
    }
    const first = this.#sliding(policy).first || (used > 0 ? this.stamp : 0)
    const resetMicros = first === 0 ? 0 : first + policy.windowMicros - now
    return { denied, used, retryMicros: denied ? resetMicros : 0, resetMicros, at: this.at, windowStart: 0 }
  }

  /**
   * The reading of one charge. How long a denial lasts is mostly known already: the window's first event frees the
   * first unit, and this batch's own event is the newest of all. Else it is left to a lookup.
   */
  judge(key: string, policy: Policy, cost: number, denied: boolean, lookups: RetryLookup[]): Reading {
    const reading = this.read(policy, denied)
    if (!denied) return reading
    if (cost > policy.limit) {
      reading.retryMicros = Number.POSITIVE_INFINITY
      return reading
    }
    const blockedMicros = this.#blockedMicros()
    const fixed = policy.algorithm === 'fixed-window'
    // Else it is the block alone that denies. A fixed window has counted the attempt already.
    const overLimit = fixed ? reading.used >= policy.limit : reading.used + cost > policy.limit
    reading.retryMicros = Math.max(overLimit ? reading.retryMicros : 0, blockedMicros)
    if (fixed || !overLimit) return reading
    const excess = reading.used + cost - policy.limit
    const resolve = (ts: number): void => {
      reading.retryMicros = Math.max(ts + policy.windowMicros - this.#account.now, blockedMicros)
    }
    if (excess > this.#before(policy)) resolve(this.stamp)
    else if (excess > 1) {
      const { base } = this.#sliding(policy)
      const giveUp = (): void => {
        reading.retryMicros = Math.max(this.stamp + policy.windowMicros - this.#account.now, blockedMicros)
        reading.isUpperBound = true
      }
      lookups.push({ key, after: this.at - policy.windowMicros, base, excess, resolve, giveUp })
    }
    return reading
  }

  /** Refusals belong to the count that was full when they were refused: not to one that was reset since. */
  countRefusal({ policy, attempts, windowStart, seen }: Refusal): void {
    if (windowStart === windowStartAt(policy, this.at) && this.#before(policy) >= seen)
      this.count(policy, attempts)
  }

  /** Counts attempts or admitted cost, up to the most that a window holds, and tells how much it counted. */
  count(policy: Policy, cost: number): number {
    const room = Math.max(0, policy.limit + MOST_BEYOND_LIMIT - this.used(policy))
    const counted = Math.min(cost, room)
    this.added += counted
    return counted
  }

  write(key: string): KeyWrite | null {
    if (this.added === 0) return null
    const { head, pruneTo } = this.#account
    const { policies } = this.#demand
    const span = Math.max(head.span, this.#demand.span)
    const policy = policies.reduce((a, b) => (b.windowMicros > a.windowMicros ? b : a))
    const memo = this.#memo(policy)
    // A fixed window begins from nothing, so that its sum never grows past a window's.
    const total =
      policy.algorithm === 'fixed-window' ? memo.base + this.used(policy) : addToTotal(head.total, this.added)
    const step = Math.max(1, Math.floor(span / 4))
    return {
      key,
      head: {
        total,
        last: this.at,
        stamp: this.stamp > this.at ? this.stamp : 0,
        span,
        // A key's first event has nothing before it that could be due.
        pruned: head.last === 0 ? this.at - 1 : Math.max(pruneTo, head.pruned),
        memoWindow: policy.windowMicros,
        memoFirst: memo.first,
        memoBase: memo.base,
        blocked: head.blocked,
        logVersion: head.logVersion || this.at,
      },
      expiresAt: Math.max(Math.ceil((this.stamp + span + CLOCK_STEP_MICROS) / step) * step, head.blocked),
      event: this.logged > 0 ? { ts: this.stamp, hits: this.logged, total } : null,
      prune: pruneTo > 0 ? { after: head.pruned, upTo: pruneTo } : null,
    }
  }

  #memo(policy: Policy): WindowStart {
    const { head } = this.#account
    if (policy.algorithm === 'fixed-window') {
      const first = windowStartAt(policy, this.at)
      return { first, base: head.memoFirst === first ? head.memoBase : 0 }
    }
    const window = this.#sliding(policy)
    return window.first === 0 ? { first: this.stamp, base: head.total } : window
  }
}
