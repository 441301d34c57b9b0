import { type Head, instantOf, newestOf, pruneIsDue, type WindowStart } from '../account.js'
import type { KeyWrite } from '../settling-key.js'
import type { Policy } from '../store.js'
import { KnownLog } from './known-log.js'

/** The most windows of one key whose events are remembered. */
const MOST_WINDOWS = 4
/** After so many looks in a row that found a key unchanged, nobody else is taken to write it. */
const STEADY_LOOKS = 2

/** What this process remembers of one key that it has decided. */
export class KnownKey {
  #head: Readonly<Head>
  /** How often in a row the database held what was remembered. */
  #steady: number
  readonly #logs: KnownLog[] = []

  /** @param head - as it was read under its lock */
  constructor(head: Readonly<Head>) {
    this.#head = head
    // A key that nobody has written before is this process's own until another one shows.
    this.#steady = head.last === 0 ? STEADY_LOOKS : 0
  }

  get head(): Readonly<Head> {
    return this.#head
  }

  /** Whether this process seems to be the only one that writes the key. */
  get isSteady(): boolean {
    return this.#steady >= STEADY_LOOKS
  }

  /** The head as it was read again under its lock. */
  saw(head: Readonly<Head>): void {
    const { total, last, blocked, logVersion } = this.#head
    const same =
      head.total === total && head.last === last && head.blocked === blocked && head.logVersion === logVersion
    this.#steady = same ? this.#steady + 1 : 0
    // A replica that took over without the newest writes: what is remembered of them never was.
    if (head.last < last) this.#logs.length = 0
    this.#head = head
  }

  /** Is not as remembered, or will not be: somebody else writes it. */
  unsettle(): void {
    this.#steady = 0
  }

  /**
   * A window's first event: from the head itself, which is the one that was seen last, or from what is remembered.
   * Undefined when the log must be asked.
   */
  startOf(windowMicros: number, cutoff: number): WindowStart | undefined {
    const head = this.#head
    if (newestOf(head) <= cutoff) return { first: 0, base: 0 }
    if (head.memoWindow >= windowMicros && head.memoFirst > cutoff) {
      return { first: head.memoFirst, base: head.memoBase }
    }
    return this.#logOf(windowMicros)?.start(head, cutoff)
  }

  /** The events that are due to be deleted at an instant of the database's clock, or null when none are. */
  prunable(now: number, span: number): { readonly after: number; readonly upTo: number } | null {
    const head = this.#head
    const at = instantOf(head, now)
    const keep = Math.max(head.span, span)
    return pruneIsDue(head, at, keep) ? { after: head.pruned, upTo: at - keep } : null
  }

  /** The events of a window that were read under the key's lock: all later than `after` and not later than `upTo`. */
  sawEvents(
    windowMicros: number,
    after: number,
    upTo: number,
    events: readonly { readonly ts: number; readonly base: number }[],
  ): void {
    const log = new KnownLog(windowMicros, this.#head.logVersion, after, upTo)
    for (const { ts, base } of events) log.push(ts, base)
    this.#keep(log)
  }

  /** What this process has committed of the key. */
  wrote({ head, event }: KeyWrite, policies: readonly Policy[]): void {
    const before = newestOf(this.#head)
    this.#head = head
    if (event === null) return
    for (const { algorithm, windowMicros } of policies) {
      if (algorithm === 'fixed-window') continue
      const cutoff = head.last - windowMicros
      let log = this.#logOf(windowMicros)
      if (!log?.isOf(head)) {
        // Nothing is known of what the window held, unless it held nothing.
        if (before > cutoff) continue
        log = new KnownLog(windowMicros, head.logVersion, cutoff, before)
        this.#keep(log)
      }
      log.append(event.ts, event.total - event.hits, before, cutoff)
    }
  }

  #logOf(windowMicros: number): KnownLog | undefined {
    return this.#logs.find((log) => log.windowMicros === windowMicros)
  }

  #keep(log: KnownLog): void {
    const at = this.#logs.findIndex(({ windowMicros }) => windowMicros === log.windowMicros)
    if (at >= 0) this.#logs.splice(at, 1)
    this.#logs.push(log)
    if (this.#logs.length > MOST_WINDOWS) this.#logs.shift()
  }
}
