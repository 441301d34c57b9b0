import { type Head, newestOf, type WindowStart } from '../account.js'

/** The most events that are remembered of one window: a look into the log reads half as many. */
const MOST_EVENTS = 32
/** How many events a look into the log reads. */
export const EVENTS_READ = 16

/**
 * The events at the beginning of one window, as far as this process has read or written them. When the first one leaves
 * the window the next is known, so that most decisions read no event at all.
 *
 * Events are only ever added at the end, but for refunds and resets, which change the head's `logVersion`. So what is
 * remembered stays true whoever writes behind it.
 */
export class KnownLog {
  readonly windowMicros: number
  readonly #version: number
  readonly #times: number[]
  /** The running total before each event. */
  readonly #bases: number[]
  /** All events later than this and not later than `#upTo` are remembered. */
  #after: number
  #upTo: number

  constructor(windowMicros: number, version: number, after: number, upTo: number) {
    this.windowMicros = windowMicros
    this.#version = version
    this.#times = []
    this.#bases = []
    this.#after = after
    this.#upTo = upTo
  }

  /** The window's first event, or undefined when the log must be asked. */
  start(head: Readonly<Head>, cutoff: number): WindowStart | undefined {
    if (head.logVersion !== this.#version || cutoff < this.#after) return undefined
    const first = this.#times.findIndex((ts) => ts > cutoff)
    if (first >= 0) return { first: this.#times[first] as number, base: this.#bases[first] as number }
    return this.#upTo >= newestOf(head) ? { first: 0, base: 0 } : undefined
  }

  /** An event that was read, behind all that are remembered. */
  push(ts: number, base: number): void {
    this.#times.push(ts)
    this.#bases.push(base)
  }

  /**
   * An event that this process wrote at `ts` upon a key whose newest event was at `before`. What has left the window,
   * which began after `cutoff`, is forgotten: no later decision is placed before this one.
   */
  append(ts: number, base: number, before: number, cutoff: number): void {
    let gone = 0
    while (gone < this.#times.length && (this.#times[gone] as number) <= cutoff) gone += 1
    if (gone > 0) {
      this.#times.splice(0, gone)
      this.#bases.splice(0, gone)
    }
    this.#after = Math.max(this.#after, cutoff)
    if (this.#upTo < before || this.#times.length >= MOST_EVENTS) return
    this.push(ts, base)
    this.#upTo = ts
  }

  isOf(head: Readonly<Head>): boolean {
    return head.logVersion === this.#version
  }
}
