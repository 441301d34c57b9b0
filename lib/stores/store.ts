/**
 * How a policy counts.
 *
 * - `sliding-window`: exact. For every instant t of the store's clock the admitted cost inside (t − window, t] is
 *   at most the limit. Denied hits are not counted, so a client that keeps knocking recovers.
 * - `fixed-window`: windows aligned to multiples of the window since the Unix epoch. Counts attempts, denied ones
 *   too; up to twice the limit can pass around a boundary.
 */
export type Algorithm = 'sliding-window' | 'fixed-window'

/** What a calendar window begins with. */
export type CalendarUnit = 'hour' | 'day' | 'week' | 'month' | 'year'

/** One window, in microseconds since the epoch: from `start` on, and before `end`, which begins the next one. */
export interface FixedWindow {
  readonly start: number
  readonly end: number
}

/** Windows that begin with the hours, days, weeks, months or years of a time zone, and so are not all of one length. */
export interface Calendar {
  readonly every: CalendarUnit
  /** Tells calendars apart, and is a part of stored keys: `day`, `month.15/europe/berlin`. */
  readonly id: string
  /** The window that holds an instant of the store's clock, in microseconds since the epoch. */
  windowAt(micros: number): FixedWindow
}

/** A limit as a store sees it. It travels with every hit: a store knows no limiter and keeps no limit of its own. */
export interface Policy {
  /** Shown in headers, and the namespace of the keys. */
  readonly name: string
  /** Highest cost admitted in a window: 0 to 1,000,000,000,000. 0 denies everything. */
  readonly limit: number
  /** Length of the window in seconds, 0.001 to 31,536,000 (a year). With a `calendar` no window is longer. */
  readonly windowSeconds: number
  /** The same length in whole microseconds, the unit in which stores keep time. */
  readonly windowMicros: number
  readonly algorithm: Algorithm
  /** Where the windows of a fixed-window policy begin, when that is not at multiples of their length since the epoch. */
  readonly calendar?: Calendar | undefined
  /**
   * How long the key's events must be kept, in microseconds: the window, the retention of the audit log, and the
   * window of any other policy that counts the same events.
   */
  readonly keepMicros: number
  /** Whether a fixed window also writes its admitted hits to the event log. A sliding window always does. */
  readonly audit: boolean
}

/** One key to charge under one policy. */
export interface Charge {
  /** The stored form of the key (see `storageKey`): at most 120 bytes of UTF-8. */
  readonly key: string
  readonly policy: Policy
}

/** A request to charge one or more keys, all or none of them. */
export interface Hit {
  readonly charges: readonly Charge[]
  /** Whole number, 1 to 1,000,000,000,000; the same for every charge of the hit. */
  readonly cost: number
  /** Counts the hit although limits deny it: a penalty. Default false. */
  readonly force?: boolean
  /** Asks for more units than the hit costs, for hits to come. */
  readonly lease?: LeaseRequest
}

/**
 * Units that a process takes ahead and hands out by itself for a while. A hit that passes is granted as many units as
 * fit, its cost at least. In a sliding window all of them are stored as of the end of that while, `micros` after the
 * instant of the decision: no unit is used later than it is stored, so no window can hold more than its limit.
 */
export interface LeaseRequest {
  /** The most units, the hit's cost among them. */
  readonly units: number
  /** How long after the decision units may be used, in microseconds. A fixed window's lease ends with it, if sooner. */
  readonly micros: number
}

/** Attempts on a fixed window that were refused from memory and still have to be counted. */
export interface Refusal extends Charge {
  /** Summed cost of the refused attempts. */
  readonly attempts: number
  /** Start of the window they belong to, in microseconds since the epoch. In any other window they count nothing. */
  readonly windowStart: number
  /** What was counted of the window when they were refused; a window that holds less was reset since. */
  readonly seen: number
}

/** Gives back exactly one admitted hit, or what was not used of a lease. */
export interface Refund extends Charge {
  /** What the hit cost, or how many units were not used. */
  readonly cost: number
  /** The time under which the hit is stored: its reading's `at`. */
  readonly at: number
}

/** What a store decides in one transaction. */
export interface Batch {
  readonly hits: readonly Hit[]
  readonly refusals: readonly Refusal[]
}

/** The state of one charge right after its hit was decided. All durations are microseconds of the store's clock. */
export interface Reading {
  /** Whether this charge's own limit denies the hit. */
  denied: boolean
  /** Cost inside the window, this hit and its lease included when it was admitted; attempts for a fixed window. */
  used: number
  /** Until the same hit could pass: 0 when this charge does not deny, `Infinity` when it never can (cost above the limit). */
  retryMicros: number
  /** Whether `retryMicros` is longer than it need be, so that it says nothing of when the denial ends. */
  isUpperBound?: boolean
  /** Until the oldest counted event leaves (sliding) or the window ends (fixed); 0 when nothing is counted. */
  resetMicros: number
  /** The instant of the decision, in microseconds since the epoch; the stored time when the hit was admitted. */
  at: number
  /** Start of the current window of a fixed-window policy; 0 for a sliding window. */
  windowStart: number
}

/** What became of one hit. */
export interface Verdict {
  readonly allowed: boolean
  /** One for each charge, in the order of the hit's charges. */
  readonly readings: readonly Reading[]
  /** How many units an admitted hit that asked for a lease was granted, its cost among them. */
  readonly granted?: number
}

/** What one sweep did. */
export interface SweepResult {
  /** Keys removed, with all their events. */
  readonly keys: number
  /** Events removed. */
  readonly events: number
  /** False when another process held the sweep, so that this call removed nothing. */
  readonly ran: boolean
}

/** Is told what a sweep has removed so far. What it throws ends the sweep. */
export type SweepProgress = (soFar: Pick<SweepResult, 'keys' | 'events'>) => void

/** What a store can tell of itself without reading its tables. */
export interface StoreInspection {
  /** Keys that are stored, expired ones too. */
  readonly keys: number
  /** Events that are stored. */
  readonly events: number
  /** What the two numbers are: counted, the database's own estimate, or the most that was counted before giving up. */
  readonly precision: 'exact' | 'estimate' | 'at-least'
  /** What they take on disk, indexes included; null where nobody knows. */
  readonly bytes: number | null
  /** When some process last finished a sweep, in milliseconds since the epoch; null when unknown, or while one runs. */
  readonly sweptAt: number | null
  /** Connections to the database server, of all its clients, and the most it takes; null where there are none. */
  readonly connections: { readonly open: number; readonly most: number } | null
}

/**
 * What a limiter needs of a store. One batch is one transaction: hits are decided in order, each as if alone, and
 * a verdict is final only when the transaction is. A store rejects with a `StoreError`; it never rejects for a denial.
 */
export interface Store {
  /** Whether it waits for a connection that others have, so that it may be well although it is late. */
  readonly isCrowded?: boolean
  /** Whether it decides on this process's own thread, so that nothing else is done meanwhile; absent means no. */
  readonly isInProcess?: boolean
  /** Creates what the schema lacks and checks the rest. Safe from any number of processes at once; idempotent. */
  install(): Promise<void>
  /** Decides the hits in order. When `signal` aborts, gives up at once and holds no connection. */
  decide(batch: Batch, signal: AbortSignal): Promise<Verdict[]>
  /** Reads the state of each charge without counting anything; `denied` tells whether a hit of cost 1 would be. */
  peek(charges: readonly Charge[], signal: AbortSignal): Promise<Reading[]>
  /**
   * Takes admitted hits out of the count again, where they still are: what has left its window, was pruned or reset
   * is gone already, and nothing is taken from another hit's share or another window.
   *
   * Resolves to those of the refunds, the very objects, that it has left for a call without other keys, because giving
   * them back takes long while other keys are locked. Of one key it leaves none.
   */
  refund(refunds: readonly Refund[], signal: AbortSignal): Promise<readonly Refund[]>
  /** Denies everything on a key for so many microseconds from now on; never shortens a block that is there. */
  block(charge: Charge, micros: number, signal: AbortSignal): Promise<void>
  /**
   * The stored keys that begin with a text, in pages: a range of an index, which locks nothing. `prefix` ends in a character
   * of ASCII. Keys that come or go meanwhile may be in it or not. Optional: without it, nothing can be forgotten as a whole.
   */
  storedKeys?(prefix: string): AsyncIterable<readonly string[]>
  /** Forgets everything counted for these keys, and their blocks. */
  reset(keys: readonly string[]): Promise<void>
  /**
   * Resolves when the store could decide at this moment, and leaves no trace: it must try a write, since a server that
   * was demoted still answers reads. Never waits behind calls of this process that may be stuck themselves.
   *
   * With `keys`, whether hits on all of these could be decided: resolves when it has held their locks. That may wait
   * behind other calls, but no decision waits behind it.
   */
  probe(signal: AbortSignal, keys?: readonly string[]): Promise<void>
  /**
   * How large it is and how its server is, for people who look: reads a bounded number of rows, waits behind no decision
   * and lets none wait. Optional: without it, nobody is told.
   */
  inspect?(signal: AbortSignal): Promise<StoreInspection>
  /**
   * Removes keys that nobody has used for longer than their window and retention, with their events.
   *
   * @param onProgress - is told after each transaction what was removed so far; a store may leave that out
   */
  sweep(onProgress?: SweepProgress): Promise<SweepResult>
  /**
   * Stops the sweeper, lets decisions that are under way finish, refuses what comes after, and closes what the store
   * itself opened. Idempotent.
   */
  close(): Promise<void>
}
