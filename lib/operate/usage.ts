import { setImmediate } from 'node:timers/promises'
import { type CalendarWindow, resolveCalendar } from '../limiter/calendar-options.js'
import type { Limiter } from '../limiter/limiter.js'
import type { Key, StoredKey } from '../limiter/storage-key.js'
import { SLICE_MICROS, type UsageStore } from '../stores/kept-usage.js'
import { checkOptionNames, optionError } from '../stores/option-error.js'
import type { FixedWindow } from '../stores/store.js'

export interface UsageOptions {
  /** Whose hits are counted: what `rateLimit` returned, or a `Limiter`. */
  readonly limiter: Pick<Limiter, 'store' | 'storedKeys'>
  /** The key, as `keyFn` gives it. */
  readonly key: Key
  /** Of a middleware with several limits, the name of the one to tell of. */
  readonly name?: string | undefined
  /** From when on: a `Date`, milliseconds since the epoch, or a text such as `2026-11-01` or `2026-11-01T00:00Z`. */
  readonly from: Date | number | string
  /** Before when, in the same forms. Default now. */
  readonly to?: Date | number | string | undefined
  /**
   * What to sum up by: `'minute'`, or windows as a limit's `window` has them, such as `'day'` or
   * `{ every: 'month', timeZone: 'America/Sao_Paulo' }`. Default `'day'`.
   */
  readonly bucket?: 'minute' | CalendarWindow | undefined
}

/** What was used between two instants. */
export interface UsageBucket {
  readonly from: Date
  readonly to: Date
  /** The cost admitted, without what was given back. */
  readonly used: number
}

export interface Usage {
  /** Sum of all buckets. */
  readonly used: number
  /** In order and without a gap, also those in which nothing was used. The first and the last are whole ones. */
  readonly buckets: readonly UsageBucket[]
}

const MINUTE_MICROS = 60_000_000
/** What one query reads: of a busy key its events of a day, so that no other call waits for long. */
const PAGE_MICROS = 86_400_000_000
/** The most buckets of one answer: more than a year of hours. */
const MOST_BUCKETS = 10_000
/** The most years of one answer. Nothing is kept for longer, and each of their days is read. */
const MOST_YEARS = 11
const YEAR_MICROS = 366 * 86_400_000_000

/**
 * What a key has used, for bills and meters: the cost of its admitted hits, as the store's event log has it and, where the
 * store keeps usage (`keepUsageSeconds`), of events that are deleted. Reads by primary key, a day at a time.
 *
 * A bucket that lies only partly between `from` and `to` is told as a whole. What was admitted while the store was down is
 * in no log.
 *
 * @example
 * const { buckets } = await usage({ limiter: plan, key: 'acme', from: '2026-01-01', to: '2027-01-01', bucket: 'month' })
 *
 * @throws TypeError for a wrong option, a limit that keeps no events, a store that has no usage, and more than 10,000
 *   buckets or 11 years; StoreError when the store fails.
 */
export async function usage(options: UsageOptions): Promise<Usage> {
  checkOptionNames('usage', options, ['limiter', 'key', 'name', 'from', 'to', 'bucket'])
  const { limiter, key, name, bucket = 'day' } = options
  if (typeof limiter?.storedKeys !== 'function') throw optionError('limiter', 'a limiter', limiter)
  const store = limiter.store as Partial<UsageStore>
  if (typeof store.readUsage !== 'function')
    throw new TypeError('Expected `limiter` to count in a MysqlStore or a SqliteStore: others keep no usage')
  const stored = storedKey(limiter.storedKeys(key), name)
  const from = microsOf('from', options.from)
  const to = options.to === undefined ? Date.now() * 1000 : microsOf('to', options.to)
  if (to <= from) throw optionError('to', 'later than `from`', options.to)
  return readBuckets(store as UsageStore, stored, bucketsOf(bucket, from, to), bucket === 'minute')
}

/** Sums up what a store has of a stored key by buckets, which follow each other without a gap. */
export async function readBuckets(
  store: UsageStore,
  stored: string,
  buckets: readonly FixedWindow[],
  byMinute: boolean,
): Promise<Usage> {
  const used = buckets.map(() => 0)
  const end = buckets.at(-1)?.end ?? 0
  let at = 0
  for (let page = buckets[0]?.start ?? 0; page < end; page += PAGE_MICROS) {
    const until = Math.min(page + PAGE_MICROS, end)
    // A store in this process answers before anything else is done, and so would years of days.
    await setImmediate()
    const slices = await store.readUsage(stored, page, until, byMinute ? MINUTE_MICROS : SLICE_MICROS)
    for (const slice of slices.toSorted((a, b) => a.at - b.at)) {
      while ((buckets[at] as FixedWindow).end <= slice.at) at += 1
      used[at] = (used[at] as number) + slice.cost
    }
  }
  return {
    used: used.reduce((sum, each) => sum + each, 0),
    buckets: buckets.map((each, i) => ({
      from: new Date(each.start / 1000),
      to: new Date(each.end / 1000),
      used: used[i] as number,
    })),
  }
}

/**
 * The buckets that two instants and all between them lie in.
 *
 * @throws TypeError for more than can be read at once, and for a wrong calendar.
 */
export function bucketsOf(bucket: 'minute' | CalendarWindow, from: number, to: number): FixedWindow[] {
  if (to - from > MOST_YEARS * YEAR_MICROS) {
    throw new TypeError(
      `Expected \`from\` and \`to\` to be at most ${MOST_YEARS} years apart, got ${Math.round((to - from) / YEAR_MICROS)}`,
    )
  }
  const calendar = bucket === 'minute' ? null : resolveCalendar(bucket, 'bucket')
  const minuteAt = (at: number): FixedWindow => {
    const start = at - (at % MINUTE_MICROS)
    return { start, end: start + MINUTE_MICROS }
  }
  const buckets: FixedWindow[] = []
  for (let at = from; at < to; ) {
    const window = calendar?.windowAt(at) ?? minuteAt(at)
    buckets.push(window)
    if (buckets.length > MOST_BUCKETS)
      throw new TypeError(
        `Expected \`from\`, \`to\` and \`bucket\` to make at most ${MOST_BUCKETS} buckets, got more`,
      )
    at = window.end
  }
  return buckets
}

function storedKey(keys: readonly StoredKey[], name: string | undefined): string {
  const names = keys.map((each) => each.name).join(', ')
  const found = keys.filter((each) => name === undefined || each.name === name)
  const [only] = found
  if (only === undefined) throw optionError('name', `one of ${names}`, name)
  if (found.length > 1) throw optionError('name', `given, as the limiter has several limits: ${names}`, name)
  if (!only.isLogged) {
    throw new TypeError(
      `Limit \`${only.name}\` has no events to sum up: a fixed window and a calendar \`window\` need \`audit: true\``,
    )
  }
  return only.key
}

/** @throws TypeError unless it is an instant since the epoch. */
function microsOf(name: string, value: unknown): number {
  const isInstant = value instanceof Date || typeof value === 'number' || typeof value === 'string'
  const millis = isInstant ? new Date(value).getTime() : Number.NaN
  if (!(millis >= 0)) throw optionError(name, 'an instant since 1970', value)
  return Math.round(millis * 1000)
}
