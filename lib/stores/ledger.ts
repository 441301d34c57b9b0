import type { Batch, Charge, Policy, Reading, Verdict } from './store.js'

/**
 * What a store keeps of one key beside its events. Times are microseconds since the epoch.
 *
 * `total` only ever grows, and every event carries the total up to and including itself. So the cost inside a
 * window is a subtraction, `total − (total before the window's first event)`, however many events lie between.
 */
export interface Head {
  /** Sum of all cost ever counted for the key. */
  total: number
  /** Time of the newest write. No decision is ever placed before it, so a clock that steps back reopens nothing. */
  last: number
  /** How long events must be kept: the the longest `keepMicros` that any policy has asked of this key. */
  span: number
  /** Events up to here are deleted. Deleting starts after it, so as not to walk rows that are marked but not purged. */
  pruned: number
  /** The window, in microseconds, that `memoFirst` and `memoBase` were read for; 0 when they hold nothing. */
  memoWindow: number
  /** Sliding: time of the window's first event when last looked up. Fixed: start of the current window. */
  memoFirst: number
  /** The running total just before that first event, or at the start of the fixed window. */
  memoBase: number
}

/** The first event inside a window; `first` is 0 when the window is empty. */
export interface WindowStart {
  first: number
  /** The running total just before that event. */
  base: number
}

/** A key under its lock: what was read of it, at one instant. */
export interface Account {
  readonly head: Readonly<Head>
  /** The store's clock, read after the lock was taken. */
  readonly now: number
  /** By window length in microseconds; one for each sliding policy that asks. */
  readonly windows: ReadonlyMap<number, WindowStart>
  /** Events up to here may be deleted in this unit; 0 when none are due. */
  readonly pruneTo: number
}

/** What must be written for one key, all in the same transaction. */
export interface KeyWrite {
  readonly key: string
  readonly head: Head
  /** When the whole key may be swept. Moves in steps of a quarter span, to spare its index. */
  readonly expiresAt: number
  readonly event: { readonly ts: number; readonly hits: number; readonly total: number } | null
  /** Delete events with `after < ts <= upTo`. */
  readonly prune: { readonly after: number; readonly upTo: number } | null
}

/** A denial whose waiting time needs one more read: when the event that reaches `total` leaves the window. */
export interface RetryLookup {
  readonly key: string
  /** Only events later than this are inside the window. */
  readonly after: number
  readonly total: number
  /** Tells the reading when that event happened. */
  readonly resolve: (ts: number) => void
}

/** Everything that follows from a batch, for the store to write, and to answer when that is committed. */
export interface Settlement {
  readonly verdicts: Verdict[]
  readonly writes: KeyWrite[]
  readonly lookups: RetryLookup[]
}

/** What has to be read of one key before a batch can be settled. */
export interface Demand {
  readonly key: string
  readonly policies: Policy[]
  /** The longest `keepMicros` among the batch's policies on this key. */
  span: number
}

/** A key that was never used. */
export const EMPTY_HEAD: Readonly<Head> = {
  total: 0,
  last: 0,
  span: 0,
  pruned: 0,
  memoWindow: 0,
  memoFirst: 0,
  memoBase: 0,
}

/** The keys a batch touches and the policies that ask about each. */
export function demandsOf(batch: Batch): Map<string, Demand> {
  const demands = new Map<string, Demand>()
  const add = ({ key, policy }: Charge): void => {
    const span = policy.keepMicros
    const demand = demands.get(key)
    if (demand === undefined) {
      demands.set(key, { key, policies: [policy], span })
      return
    }
    if (!demand.policies.includes(policy)) demand.policies.push(policy)
    if (span > demand.span) demand.span = span
  }
  for (const hit of batch.hits) for (const charge of hit.charges) add(charge)
  for (const refusal of batch.refusals) add(refusal)
  return demands
}

/** The instant at which a key is decided: never before, and never equal to, its newest write. */
export function instantOf(head: Readonly<Head>, now: number): number {
  return now > head.last ? now : head.last + 1
}

/**
 * Whether events older than `span` are worth deleting: at most eight times a span, so that a key at its limit does
 * not pay a DELETE with every hit. The table then holds at most an eighth more than it must.
 */
export function pruneIsDue(head: Readonly<Head>, at: number, span: number): boolean {
  return head.last > 0 && at - span - head.pruned >= span / 8
}

/** One key while a batch is being settled: what was read, plus what the batch has added so far. */
class Entry {
  readonly #account: Account
  readonly #demand: Demand
  readonly at: number
  /** Cost admitted by this batch (sliding), or attempts counted by it (fixed). */
  added = 0
  /** Cost admitted by this batch that goes to the event log. */
  logged = 0

  constructor(account: Account, demand: Demand) {
    this.#account = account
    this.#demand = demand
    this.at = instantOf(account.head, account.now)
  }

  /** Fixed windows begin at multiples of their length since the epoch. */
  #fixedStart(policy: Policy): number {
    return this.at - (this.at % policy.windowMicros)
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
      return head.memoFirst === this.#fixedStart(policy) ? head.total - head.memoBase : 0
    }
    const { first, base } = this.#sliding(policy)
    if (first === 0) return 0
    // Events older than their head: somebody deleted the head by hand. Then all that the new head counted is inside.
    return base <= head.total ? head.total - base : head.total
  }

  used(policy: Policy): number {
    return this.#before(policy) + this.added
  }

  read(policy: Policy, denied: boolean): Reading {
    const { now } = this.#account
    const used = this.used(policy)
    if (policy.algorithm === 'fixed-window') {
      const windowStart = this.#fixedStart(policy)
      const untilEnd = windowStart + policy.windowMicros - now
      return {
        denied,
        used,
        retryMicros: denied ? untilEnd : 0,
        resetMicros: untilEnd,
        at: this.at,
        windowStart,
      }
    }
    const first = this.#sliding(policy).first || (used > 0 ? this.at : 0)
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
    if (policy.algorithm === 'fixed-window') return reading
    const excess = reading.used + cost - policy.limit
    const resolve = (ts: number): void => {
      reading.retryMicros = ts + policy.windowMicros - this.#account.now
    }
    if (excess > this.#before(policy)) resolve(this.at)
    else if (excess > 1) {
      const total = this.#sliding(policy).base + excess
      lookups.push({ key, after: this.at - policy.windowMicros, total, resolve })
    }
    return reading
  }

  countRefusal(policy: Policy, attempts: number, windowStart: number): void {
    if (windowStart === this.#fixedStart(policy)) this.added += attempts
  }

  write(key: string): KeyWrite | null {
    if (this.added === 0) return null
    const { head, pruneTo } = this.#account
    const { policies } = this.#demand
    const span = Math.max(head.span, this.#demand.span)
    const total = head.total + this.added
    const policy = policies.reduce((a, b) => (b.windowMicros > a.windowMicros ? b : a))
    const memo = this.#memo(policy)
    const step = Math.max(1, Math.floor(span / 4))
    return {
      key,
      head: {
        total,
        last: this.at,
        span,
        // A key's first event has nothing before it that could be due.
        pruned: head.last === 0 ? this.at - 1 : Math.max(pruneTo, head.pruned),
        memoWindow: policy.windowMicros,
        memoFirst: memo.first,
        memoBase: memo.base,
      },
      expiresAt: Math.ceil((this.at + span) / step) * step,
      event: this.logged > 0 ? { ts: this.at, hits: this.logged, total } : null,
      prune: pruneTo > 0 ? { after: head.pruned, upTo: pruneTo } : null,
    }
  }

  #memo(policy: Policy): WindowStart {
    const { head } = this.#account
    if (policy.algorithm === 'fixed-window') {
      const first = this.#fixedStart(policy)
      return { first, base: head.memoFirst === first ? head.memoBase : head.total }
    }
    const window = this.#sliding(policy)
    return window.first === 0 ? { first: this.at, base: head.total } : window
  }
}

/**
 * Decides a batch over keys that are locked and read: pure arithmetic, the same for every store, so that exactness
 * is proved once. Hits are taken in order, each all or nothing.
 */
export function settle(
  batch: Batch,
  demands: ReadonlyMap<string, Demand>,
  accounts: ReadonlyMap<string, Account>,
): Settlement {
  const entries = new Map<string, Entry>()
  for (const [key, demand] of demands) {
    const account = accounts.get(key)
    if (account === undefined) throw new Error('a key of the batch was not read')
    entries.set(key, new Entry(account, demand))
  }
  const entryOf = (key: string): Entry => entries.get(key) as Entry

  for (const { key, policy, attempts, windowStart } of batch.refusals) {
    entryOf(key).countRefusal(policy, attempts, windowStart)
  }

  const lookups: RetryLookup[] = []
  const verdicts = batch.hits.map(({ charges, cost }): Verdict => {
    const denied = charges.map(({ key, policy }) => entryOf(key).used(policy) + cost > policy.limit)
    const allowed = !denied.includes(true)

    // A key named by two charges of one hit (one log, two windows) is charged once.
    const charged = new Set<string>()
    charges.forEach(({ key, policy }, i) => {
      const counts = allowed || (denied[i] && policy.algorithm === 'fixed-window')
      if (!counts || charged.has(key)) return
      charged.add(key)
      const entry = entryOf(key)
      entry.added += cost
      if (allowed && (policy.algorithm === 'sliding-window' || policy.audit)) entry.logged += cost
    })

    const readings = charges.map(({ key, policy }, i) =>
      entryOf(key).judge(key, policy, cost, denied[i] === true, lookups),
    )
    return { allowed, readings }
  })

  const writes: KeyWrite[] = []
  for (const [key, entry] of entries) {
    const write = entry.write(key)
    if (write !== null) writes.push(write)
  }
  return { verdicts, writes, lookups }
}

/** The state of the charges as read, nothing counted: each judged as a hit of cost 1 would be. */
export function settlePeek(
  charges: readonly Charge[],
  accounts: ReadonlyMap<string, Account>,
): Pick<Settlement, 'lookups'> & { readings: Reading[] } {
  const lookups: RetryLookup[] = []
  const readings = charges.map(({ key, policy }) => {
    const account = accounts.get(key)
    if (account === undefined) throw new Error('a key was not read')
    const entry = new Entry(account, { key, policies: [policy], span: 0 })
    return entry.judge(key, policy, 1, entry.used(policy) + 1 > policy.limit, lookups)
  })
  return { readings, lookups }
}

/** The demands of a peek. */
export const demandsOfPeek = (charges: readonly Charge[]): Map<string, Demand> =>
  demandsOf({ hits: [{ charges, cost: 1 }], refusals: [] })
