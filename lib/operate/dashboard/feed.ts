import type { Response } from 'express'
import { SERIES_SECONDS } from './decision-series.js'
import type { FillLookup } from './fill-lookup.js'
import type { Fill } from './heavy-keys.js'
import type { LimitRecord } from './limit-record.js'
import type { ManagedLimits, Rule } from './managed-limits.js'
import type { RecentKey } from './recent-keys.js'
import type { Recorder } from './recorder.js'
import type { StoreView } from './store-view.js'
import { Viewers } from './viewers.js'

/** How many keys are shown in a list. */
const MOST_ROWS = 5
const TICK_MS = 1_000

/** A row of a list of keys. */
export interface KeyRow extends Omit<RecentKey, 'fill'> {
  readonly fill: Fill | null
}

/** The two lists of one limit. */
interface KeyLists {
  readonly busiest: readonly KeyRow[]
  readonly mostDenied: readonly KeyRow[]
}

/** One limit as it is when a viewer comes. */
interface LimitSnapshot extends KeyLists {
  readonly name: string
  readonly rules: readonly Rule[]
  /** Whether its keys can be looked up, reset and blocked: its limiter was given to the dashboard. */
  readonly managed: boolean
  /** Three numbers a second: allowed, denied, degraded. */
  readonly counts: readonly number[]
}

/**
 * Tells viewers what happens: all of it to one who comes, and from then on each second what is new. Works only while
 * somebody looks. The ticks are a heartbeat as well.
 */
export class Feed {
  readonly viewers: Viewers
  readonly #recorder: Recorder
  readonly #limits: ManagedLimits
  readonly #lookup: FillLookup
  readonly #storeView: StoreView
  #timer: NodeJS.Timeout | null = null
  /** The last second that was told. */
  #told = 0
  #toldLimits = 0
  /** The lists as they were last told, as JSON, by limit. */
  readonly #lists = new Map<string, string>()

  constructor(
    mostViewers: number,
    recorder: Recorder,
    limits: ManagedLimits,
    lookup: FillLookup,
    storeView: StoreView,
  ) {
    this.#recorder = recorder
    this.#limits = limits
    this.#lookup = lookup
    this.#storeView = storeView
    this.viewers = new Viewers(mostViewers, (count) => this.#schedule(count))
  }

  /** Begins a stream to a viewer. */
  open(res: Response): void {
    this.viewers.add(res)
    this.#greet([res])
    void this.#storeView.refresh()
  }

  #schedule(viewers: number): void {
    if (viewers > 0 && this.#timer === null) {
      this.#told = lastSecond()
      this.#toldLimits = this.#recorder.limits.length
      this.#timer = setInterval(() => this.#tick(), TICK_MS)
      this.#timer.unref()
    } else if (viewers === 0 && this.#timer !== null) {
      clearInterval(this.#timer)
      this.#timer = null
    }
  }

  #greet(to?: Response[]): void {
    const now = Date.now()
    const end = this.#told
    const limits = this.#recorder.limits.map(
      (record): LimitSnapshot => ({
        name: record.name,
        rules: this.#limits.rulesOf(record.name),
        managed: this.#limits.has(record.name),
        counts: record.series.between(end - SERIES_SECONDS + 1, end),
        ...this.#listsOf(record, now),
      }),
    )
    this.viewers.send('snapshot', { now, end, limits, store: this.#storeView.state(now) }, to)
  }

  #tick(): void {
    const now = Date.now()
    const records = this.#recorder.limits
    const end = lastSecond()
    // A process that stood still, or whose clock was set: what is missing is in the whole.
    const isBroken = end < this.#told || end - this.#told > SERIES_SECONDS
    if (isBroken || records.length !== this.#toldLimits) {
      this.#told = end
      this.#toldLimits = records.length
      this.#greet()
      return
    }
    const from = this.#told + 1
    this.#told = end
    const counts = records.map(({ series }) => series.between(from, end))
    const lists = records.map((record) => this.#changedLists(record, now))
    this.viewers.send('tick', { now, end, counts, lists, store: this.#storeView.state(now) })
    void this.#lookup.run()
    void this.#storeView.refresh()
  }

  /** The lists of a limit, or null when they are as they were. */
  #changedLists(record: LimitRecord, now: number): KeyLists | null {
    const lists = this.#listsOf(record, now)
    const text = JSON.stringify(lists)
    if (text === this.#lists.get(record.name)) return null
    this.#lists.set(record.name, text)
    return lists
  }

  #listsOf({ name, busiest, mostDenied }: LimitRecord, now: number): KeyLists {
    const rowsOf = (keys: RecentKey[]): KeyRow[] =>
      keys.map((key) => ({ ...key, fill: this.#lookup.fill(name, key, now) }))
    return {
      busiest: rowsOf(busiest.top(MOST_ROWS, now)),
      mostDenied: rowsOf(mostDenied.top(MOST_ROWS, now)),
    }
  }
}

/** The last second that is complete, since the epoch. */
const lastSecond = (): number => Math.floor(Date.now() / 1000) - 1
