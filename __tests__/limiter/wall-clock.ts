import type { CalendarOptions } from '../../lib/index.js'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']

/**
 * The windows of a calendar by looking at a zone's clock minute by minute, with nothing but Intl: knows no offset, no
 * transition and no date library, so that it cannot share a mistake with what it checks. Zones have changed at whole
 * minutes since 1973.
 */
export class WallClock {
  readonly #days: Intl.DateTimeFormat
  readonly #times: Intl.DateTimeFormat
  readonly #beginnings = new Map<string, number>()

  constructor(timeZone: string) {
    // Sweden writes 2026-11-30.
    this.#days = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' })
    this.#times = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' })
  }

  /** What the clock shows, as 2026-11-30 17:05. */
  shows(millis: number): string {
    return this.#times.format(millis)
  }

  /** The window that holds an instant, in milliseconds. */
  windowAt(options: CalendarOptions, millis: number): { start: number; end: number } {
    if (options.every === 'hour') return this.#hourAt(millis)
    let first = firstDay(options, this.#days.format(millis))
    let next = nextFirstDay(options, first)
    while (this.beginning(next) <= millis) {
      first = next
      next = nextFirstDay(options, first)
    }
    return { start: this.beginning(first), end: this.beginning(next) }
  }

  /** The first minute at which the clock shows a day or a later one. */
  beginning(day: string): number {
    let found = this.#beginnings.get(day)
    if (found === undefined) {
      found = Date.parse(day) - 1.5 * DAY
      while (this.#days.format(found) < day) found += MINUTE
      this.#beginnings.set(day, found)
    }
    return found
  }

  /** From where the clock last showed a full hour, or was set, to where it next does or is. */
  #hourAt(millis: number): { start: number; end: number } {
    const isFirst = (minute: number): boolean => this.shows(minute).endsWith(':00') || this.#wasSet(minute)
    let start = millis - (millis % MINUTE)
    while (!isFirst(start)) start -= MINUTE
    let end = start + MINUTE
    while (!isFirst(end)) end += MINUTE
    return { start, end }
  }

  #wasSet(minute: number): boolean {
    const read = (at: number): number => Date.parse(`${this.shows(at).replace(' ', 'T')}Z`)
    return read(minute) - read(minute - MINUTE) !== MINUTE
  }
}

const dayText = (millis: number): string => new Date(millis).toISOString().slice(0, 10)
const later = (day: string, days: number): string => dayText(Date.parse(day) + days * DAY)

function firstDay({ every, startsOn }: CalendarOptions, day: string): string {
  const date = new Date(day)
  if (every === 'year') return `${day.slice(0, 4)}-01-01`
  if (every === 'week') {
    const wanted = (WEEKDAYS.indexOf(String(startsOn ?? 'monday')) + 1) % 7
    return later(day, -((date.getUTCDay() - wanted + 7) % 7))
  }
  if (every === 'month') {
    let first = day
    while (!beginsMonth(first, Number(startsOn ?? 1))) first = later(first, -1)
    return first
  }
  return day
}

function nextFirstDay(options: CalendarOptions, first: string): string {
  let next = later(first, 1)
  while (firstDay(options, next) !== next) next = later(next, 1)
  return next
}

/** Whether it is the wanted day of its month, or the last of a month that has no such day. */
function beginsMonth(day: string, wanted: number): boolean {
  const inMonth = Number(day.slice(8))
  return inMonth === wanted || (inMonth < wanted && later(day, 1).endsWith('-01'))
}
