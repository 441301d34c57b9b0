import type { Hit, Verdict } from '../stores/store.js'

/** A verdict, and when its query was sent on this process's monotonic clock, in milliseconds. */
export interface Answer {
  readonly verdict: Verdict
  readonly sentAt: number
}

/** A hit that has no answer yet. Times are on the monotonic clock, in milliseconds. */
export interface Pending {
  readonly hit: Hit
  /** Since when its caller waits. */
  readonly askedAt: number
  deadline: number
  /** Whether the deadline was moved already. */
  extended: boolean
  answered: boolean
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** Answers a hit with a failure, unless it is answered already. */
export function rejectPending(pending: Pending, error: unknown): void {
  if (pending.answered) return
  pending.answered = true
  pending.reject(error)
}
