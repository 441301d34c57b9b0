/**
 * What a store keeps of one key beside its events. Times are microseconds since the epoch.
 *
 * `total` grows, and every event carries the total up to and including itself. So the cost inside a window is a
 * subtraction, `total − (total before the window's first event)`, however many events lie between.
 */
export interface Head {
  /** Sum of all cost ever counted for the key, which goes round: see `addToTotal`. */
  total: number
  /** Time of the newest write. No decision is ever placed before it, so a clock that steps back reopens nothing. */
  last: number
  /**
   * Time of the newest event, where that is later than `last`, else 0. The event of a lease lies at the lease's end, so
   * that whatever is used of it is used no later than it is stored; the key's instants go on from `last`.
   */
  stamp: number
  /** How long events must be kept: the longest `keepMicros` that any policy has asked of this key. */
  span: number
  /** Events up to here are deleted. Deleting starts after it, so as not to walk rows that are marked but not purged. */
  pruned: number
  /** The window, in microseconds, that `memoFirst` and `memoBase` were read for; 0 when they hold nothing. */
  memoWindow: number
  /** Sliding: time of the window's first event when last looked up. Fixed: start of the current window. */
  memoFirst: number
  /** The running total just before that first event, or at the start of the fixed window. */
  memoBase: number
  /** Everything is denied until then; 0 when it is not. */
  blocked: number
  /**
   * Another one whenever past events were changed, as refunds do, and for every life of a key: a process that
   * remembers events may believe them while it is the same.
   */
  logVersion: number
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

/** A key that was never used. */
export const EMPTY_HEAD: Readonly<Head> = {
  total: 0,
  last: 0,
  stamp: 0,
  span: 0,
  pruned: 0,
  memoWindow: 0,
  memoFirst: 0,
  memoBase: 0,
  blocked: 0,
  logVersion: 0,
}

/** The instant at which a key is decided: never before, and never equal to, its newest write. */
export function instantOf(head: Pick<Head, 'last'>, now: number): number {
  return now > head.last ? now : head.last + 1
}

/** Events are deleted at most once a second, however short the window. */
const LEAST_PRUNE_MICROS = 1_000_000

/** Time of the newest event that the key can have; no window after it holds any. */
export const newestOf = (head: Readonly<Head>): number => Math.max(head.last, head.stamp)

/**
 * The time under which a unit decided at `at` is stored: its instant, or the end of its lease. Running totals grow with
 * time, so whatever is stored after a lease is stored as later than it, also when it is decided before its end: it is
 * counted a little longer than it must be, and never shorter.
 */
export const stampOf = (head: Readonly<Head>, at: number, leaseMicros: number): number =>
  Math.max(at + leaseMicros, head.stamp + 1)

/**
 * Whether events older than `span` are worth deleting: at most eight times a span, so that a key at its limit does
 * not pay a DELETE with every hit. The table then holds at most an eighth more than it must, or a second's events.
 */
export function pruneIsDue(head: Readonly<Head>, at: number, span: number): boolean {
  return head.last > 0 && at - span - head.pruned >= Math.max(span / 8, LEAST_PRUNE_MICROS)
}
