import { DateTime, IANAZone } from 'luxon'
import type { Calendar, CalendarUnit, FixedWindow } from '../stores/store.js'

const HOUR = 3_600_000
/**
 * More than any zone is ahead of or behind UTC, in milliseconds. No zone has changed its offset twice in so short a time
 * since 1970.
 */
const A_DAY_AND_A_HALF = 36 * HOUR
/** No window, since none is over before it begins. */
const NONE: FixedWindow = { start: 0, end: 0 }

/**
 * Windows by the clock on the wall of one time zone.
 *
 * A day begins at the first instant at which that clock shows the day or a later one. So days follow each other without
 * a gap whatever the zone does: one that is without its midnight begins when the clock jumps over it, one that has two
 * of them begins with the first, and a day that was left out is no window. Weeks, months and years begin with a day. An hour
 * ends when the clock is set, so one that the clock shows twice is two windows.
 *
 * What Luxon knows is the zone's offset at an instant, and the arithmetic of dates, done here in UTC. It is not asked
 * which instant a local time means: of two it takes the one that suits the offset of today.
 */
export class ZoneCalendar implements Calendar {
  readonly every: CalendarUnit
  readonly id: string
  readonly #zone: IANAZone
  readonly #startsOn: number
  /** The windows asked for last: all hits of a while are in one, and around its end in two. */
  #recent = NONE
  #earlier = NONE

  /**
   * @param timeZone - a name that the runtime knows
   * @param startsOn - of a week its first day, 1 (Monday) to 7; of a month its first day, 1 to 31, in shorter months the
   *   last one
   */
  constructor(every: CalendarUnit, id: string, timeZone: string, startsOn: number) {
    this.every = every
    this.id = id
    this.#zone = IANAZone.create(timeZone)
    this.#startsOn = startsOn
  }

  windowAt(micros: number): FixedWindow {
    if (micros >= this.#recent.start && micros < this.#recent.end) return this.#recent
    if (micros >= this.#earlier.start && micros < this.#earlier.end) return this.#earlier
    const millis = Math.floor(micros / 1000)
    const { start, end } = this.every === 'hour' ? this.#hourAt(millis) : this.#periodAt(millis)
    this.#earlier = this.#recent
    this.#recent = { start: start * 1000, end: end * 1000 }
    return this.#recent
  }

  #hourAt(millis: number): FixedWindow {
    const offset = this.#offset(millis)
    const start = millis - ((millis + offset) % HOUR)
    const end = start + HOUR
    return {
      start: this.#offset(start) === offset ? start : this.#changeIn(start, millis),
      end: this.#offset(end - 1) === offset ? end : this.#changeIn(millis, end - 1),
    }
  }

  #periodAt(millis: number): FixedWindow {
    let first = this.#firstDay(local(millis + this.#offset(millis)))
    let next = this.#nextFirstDay(first)
    let end = this.#beginningOf(next)
    // The clock may show a day again after it has shown the next one.
    while (end <= millis) {
      first = next
      next = this.#nextFirstDay(first)
      end = this.#beginningOf(next)
    }
    return { start: this.#beginningOf(first), end }
  }

  /** The first day of the period that a local date is in. */
  #firstDay(date: DateTime): DateTime {
    const day = date.startOf('day')
    switch (this.every) {
      case 'year':
        return day.startOf('year')
      case 'month': {
        const first = this.#inMonth(day)
        return first <= day ? first : this.#inMonth(day.startOf('month').minus({ months: 1 }))
      }
      case 'week':
        return day.minus({ days: (day.weekday - this.#startsOn + 7) % 7 })
      default:
        return day
    }
  }

  #nextFirstDay(first: DateTime): DateTime {
    switch (this.every) {
      case 'year':
        return first.plus({ years: 1 })
      case 'month':
        return this.#inMonth(first.startOf('month').plus({ months: 1 }))
      case 'week':
        return first.plus({ weeks: 1 })
      default:
        return first.plus({ days: 1 })
    }
  }

  /** The day of a month on which a window begins. */
  #inMonth(date: DateTime): DateTime {
    return date.set({ day: Math.min(this.#startsOn, date.daysInMonth ?? 28) })
  }

  /** The first instant at which the zone's clock shows a day or a later one. */
  #beginningOf(day: DateTime): number {
    const midnight = day.toMillis()
    const early = midnight - A_DAY_AND_A_HALF
    const before = this.#offset(early)
    const first = midnight - before
    const after = this.#offset(first)
    if (after === before) return first
    // The clock was set between the two, and may have been set past midnight.
    const second = midnight - after
    return this.#offset(second - 1) === after ? second : Math.max(second, this.#changeIn(early, first))
  }

  /** The first instant at which the offset is not that of `low`, as it is not at `high`. */
  #changeIn(low: number, high: number): number {
    const offset = this.#offset(low)
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.#offset(middle) === offset) low = middle
      else high = middle
    }
    return high
  }

  /** How far the zone's clock is ahead of UTC, in milliseconds. */
  #offset(millis: number): number {
    return Math.round(this.#zone.offset(millis) * 60_000)
  }
}

/** A local time, as if it were UTC: a date that no daylight saving can shift. */
const local = (millis: number): DateTime => DateTime.fromMillis(millis, { zone: 'utc' })
