import {
  type Admission,
  checkHistory,
  grouped,
  type Unknown,
} from '../../__tests__/processes/check-history.js'
import type { Entry } from '../../__tests__/processes/journal.js'
import type { Denial } from '../../__tests__/processes/record-denials.js'

/** A limit, by the name in front of its keys. */
export interface JudgedLimit {
  readonly name: string
  readonly limit: number
}

/** How far the clocks may be apart of the database and the processes, on one machine, in microseconds. */
const CLOCKS_APART = 20_000
/** How long after a process is gone the server may still be at its last statement, in microseconds. */
const LAST_STATEMENT = 2_000_000

/** How many keys a store on MySQL remembers. */
const MOST_KNOWN = 20_000

/** The most that pruning may be late, in microseconds: an eighth of the window, and a second. */
const pruneLag = (windowMicros: number): number => Math.max(windowMicros / 8, 1_000_000)

/** When something took effect: not before the one, and certainly by the other; not after `end` if it ever does. */
interface Interval {
  readonly from: number
  to: number
  end: number
}
type Question = Extract<Entry, { ask: number }>
type Logged = Admission & { gone?: Interval }

/** What the journals of all processes say, judged piece by piece so that a long one needs no more memory than a short one. */
export class History {
  readonly #limits: readonly JudgedLimit[]
  readonly #windowMicros: number
  /** The longest that rows may stay that count no more, in microseconds. */
  readonly #keepMicros: number
  /** Those without an answer, by process. */
  readonly #open = new Map<number, Map<number, Question>>()
  readonly #admissions = new Map<string, Logged[]>()
  #denials: Denial[] = []
  #unknown: Unknown[] = []
  readonly #resets = new Map<string, Interval[]>()
  /** When a key was last decided about, whatever was said. */
  readonly #touched = new Map<string, number>()
  /** Of the refunds and resets that are under way. */
  readonly #effects = new Map<Question, Interval>()
  /** The times of the rows that may be there of each key. */
  readonly #rows = new Map<string, number[]>()
  readonly #deniedBy = new Map<number, number>()
  /** The keys that a process may remember, by process. */
  readonly #known = new Map<number, Set<string>>()
  readonly counts = { admitted: 0, denied: 0, refunds: 0, resets: 0, unknown: 0 }
  /** How often callers were told of a failure, by its code. */
  readonly errors: Record<string, number> = {}

  constructor(limits: readonly JudgedLimit[], windowSeconds: number, keepSeconds: number) {
    this.#limits = limits
    this.#windowMicros = windowSeconds * 1e6
    this.#keepMicros = keepSeconds * 1e6
  }

  /** What the journal of a process says next. */
  add(process: number, entry: Entry): void {
    if ('error' in entry) this.errors[entry.error] = (this.errors[entry.error] ?? 0) + 1
    else if ('ask' in entry) this.#ask(process, entry)
    else if ('verdicts' in entry) this.#decide(process, entry.of, entry.verdicts)
    else this.#finish(process, entry)
  }

  /** A process is gone: what it had asked may have been done or not. */
  lose(process: number, at: number): void {
    for (const question of this.#open.get(process)?.values() ?? []) this.#doubt(question, at + LAST_STATEMENT)
    this.#open.delete(process)
  }

  #ask(process: number, question: Question): void {
    const open = this.#open.get(process) ?? new Map<number, Question>()
    open.set(question.ask, question)
    this.#open.set(process, open)
    if ('hits' in question) return
    const effect = {
      from: question.at - CLOCKS_APART,
      to: Number.POSITIVE_INFINITY,
      end: Number.POSITIVE_INFINITY,
    }
    this.#effects.set(question, effect)
    if ('resets' in question) {
      this.counts.resets += question.resets.length
      for (const key of question.resets) push(this.#resets, key, effect)
    } else {
      this.counts.refunds += question.refunds.length
      for (const [key, ts, cost] of question.refunds) {
        // Of hits of one batch any: they are stored as one.
        const hit = this.#admissions
          .get(key)
          ?.findLast((each) => each.ts === ts && each.hits === cost && each.gone === undefined)
        if (hit !== undefined) hit.gone = effect
      }
    }
  }

  #decide(process: number, of: number, verdicts: readonly (readonly [number, 0 | 1])[]): void {
    const question = this.#open.get(process)?.get(of)
    if (question === undefined || !('hits' in question))
      throw new Error(`a journal answers what was not asked`)
    this.#open.get(process)?.delete(of)
    const known = this.#known.get(process) ?? new Set()
    this.#known.set(process, known)
    question.hits.forEach(([key, hits], i) => {
      if (known.size < MOST_KNOWN) known.add(key)
      const [ts, isAdmitted] = verdicts[i] as readonly [number, 0 | 1]
      this.#touched.set(key, Math.max(ts, this.#touched.get(key) ?? 0))
      if (isAdmitted === 1) {
        push(this.#admissions, key, { key, ts, hits })
        this.#addRow(key, ts)
      } else {
        this.#denials.push({ key, at: ts })
        this.#deniedBy.set(process, this.deniedBy(process) + 1)
      }
      this.counts[isAdmitted === 1 ? 'admitted' : 'denied'] += 1
    })
  }

  /** As the store does it: what a batch admits of a key is one row, and takes old ones away. */
  #addRow(key: string, ts: number): void {
    const rows = this.#rows.get(key) ?? []
    if (rows.at(-1) === ts) return
    const past = ts - this.#windowMicros - pruneLag(this.#windowMicros)
    this.#rows.set(key, [...rows.filter((row) => row > past), ts])
  }

  #finish(process: number, { of, at, isFailed }: Extract<Entry, { isFailed: boolean }>): void {
    const open = this.#open.get(process)
    const question = open?.get(of)
    // Decided already.
    if (question === undefined) return
    open?.delete(of)
    const effect = this.#effects.get(question)
    if (isFailed || effect === undefined) this.#doubt(question, at + LAST_STATEMENT)
    else {
      effect.to = at + CLOCKS_APART
      effect.end = effect.to
      this.#effects.delete(question)
    }
  }

  /** What was asked may have been done until then, or not. */
  #doubt(question: Question, to: number): void {
    const effect = this.#effects.get(question)
    if (effect !== undefined) effect.end = to
    this.#effects.delete(question)
    if (!('hits' in question)) return
    this.counts.unknown += question.hits.length
    for (const [key, hits] of question.hits) {
      this.#unknown.push({ key, from: question.at - CLOCKS_APART, to, hits })
      this.#touched.set(key, Math.max(to, this.#touched.get(key) ?? 0))
      this.#addRow(key, to)
    }
  }

  /**
   * Judges all that was decided until then, and forgets what no later window can hold. What has no answer yet is in
   * doubt. Returns what was not exact, in words.
   */
  judge(until: number): string[] {
    const asked: Unknown[] = []
    for (const open of this.#open.values())
      for (const question of open.values())
        if ('hits' in question)
          for (const [key, hits] of question.hits)
            asked.push({ key, from: question.at - CLOCKS_APART, to: Number.POSITIVE_INFINITY, hits })
    const unknown = [...this.#unknown, ...asked]
    const due = this.#denials.filter(({ at }) => at <= until)
    this.#denials = this.#denials.filter(({ at }) => at > until)

    const logs = grouped(
      Array.from(this.#admissions, ([key, log]) => ({ key: nameOf(key), log: this.#withResets(key, log) })),
    )
    const denials = grouped(due.map((denial) => ({ key: nameOf(denial.key), denial })))
    const faults = this.#limits.flatMap(({ name, limit }) =>
      checkHistory(
        (logs.get(name) ?? []).flatMap(({ log }) => log.filter(({ ts }) => ts <= until)),
        (denials.get(name) ?? []).map(({ denial }) => denial),
        limit,
        this.#windowMicros,
        unknown,
      ),
    )
    this.#forget(until)
    return faults
  }

  /** The log of a key, with what its resets took out of it. */
  #withResets(key: string, log: readonly Logged[]): Admission[] {
    const resets = this.#resets.get(key)
    if (resets === undefined) return [...log]
    return log.map((each) => {
      let { from, to } = each.gone ?? { from: Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY }
      for (const reset of resets) {
        // One that was under way may have come before.
        if (reset.end >= each.ts) from = Math.min(from, reset.from)
        if (reset.from > each.ts) to = Math.min(to, reset.to)
      }
      return from === Number.POSITIVE_INFINITY ? each : { ...each, gone: { from, to } }
    })
  }

  #forget(until: number): void {
    const past = until - this.#windowMicros
    for (const [key, log] of this.#admissions) {
      const rest = log.filter(({ ts }) => ts > past)
      if (rest.length === 0) this.#admissions.delete(key)
      else if (rest.length < log.length) this.#admissions.set(key, rest)
    }
    this.#unknown = this.#unknown.filter(({ to }) => to > past)
    for (const [key, resets] of this.#resets) {
      const rest = resets.filter(({ end }) => end > past)
      if (rest.length === 0) this.#resets.delete(key)
      else this.#resets.set(key, rest)
    }
    for (const [key, at] of this.#touched) {
      if (at >= until - this.#keepMicros) continue
      this.#touched.delete(key)
      this.#rows.delete(key)
    }
  }

  /** What a key may have stored of the window that ends then: certainly the one, at the most the other. */
  *inWindow(at: number): Generator<readonly [key: string, least: number, most: number]> {
    const doubts = grouped(this.#unknown)
    for (const key of new Set([...this.#admissions.keys(), ...doubts.keys()])) {
      const inside = this.#withResets(key, this.#admissions.get(key) ?? []).filter(
        ({ ts }) => ts > at - this.#windowMicros && ts <= at,
      )
      const least = inside.filter(({ gone }) => gone === undefined || gone.from > at)
      const most = inside.filter(({ gone }) => gone === undefined || gone.to >= at)
      const doubt = doubts.get(key) ?? []
      yield [key, sum(least), sum(most) + sum(doubt)]
    }
  }

  /** How many hits of a process its store denied. */
  deniedBy(process: number): number {
    return this.#deniedBy.get(process) ?? 0
  }

  /** How many keys a process may remember: those that its store has decided, and no more than it remembers. */
  knownTo(process: number): number {
    return this.#known.get(process)?.size ?? 0
  }

  /** How many rows there may be: of the keys that were decided about as long ago as they may stay, here so many seconds. */
  rowsAt(at: number, keepSeconds: number): { readonly keys: number; readonly events: number } {
    let keys = 0
    let events = 0
    for (const [key, touched] of this.#touched) {
      if (touched < at - keepSeconds * 1e6) continue
      keys += 1
      events += this.#rows.get(key)?.length ?? 0
    }
    // Those under way may be stored already.
    for (const open of this.#open.values())
      for (const question of open.values())
        if ('hits' in question) {
          keys += question.hits.length
          events += question.hits.length
        }
    return { keys, events }
  }
}

/** The limiter's name, which stands in front of its keys. */
const nameOf = (key: string): string => key.slice(0, key.indexOf(':'))

const sum = (entries: readonly { readonly hits: number }[]): number =>
  entries.reduce((total, { hits }) => total + hits, 0)

function push<Item>(lists: Map<string, Item[]>, key: string, item: Item): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [item])
  else list.push(item)
}
