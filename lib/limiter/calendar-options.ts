import { IANAZone } from 'luxon'
import { checkOptionNames, optionError } from '../stores/option-error.js'
import type { Calendar, CalendarUnit } from '../stores/store.js'
import { ZoneCalendar } from './zone-calendar.js'

/** A day of the week. */
export type Weekday = (typeof WEEKDAYS)[number]

/** Windows of a calendar: those of a time zone, or with a first day of their own. */
export interface CalendarOptions {
  readonly every: CalendarUnit
  /** An IANA name such as `America/Sao_Paulo`. Default `UTC`. The rules of the zone are those that this Node.js has. */
  readonly timeZone?: string | undefined
  /**
   * Where a week begins: a day in English and lower case, default `monday`. Where a month begins: a day from 1 to 31,
   * default 1; a month without that day begins its window on its last day. Other windows have no such choice.
   */
  readonly startsOn?: Weekday | number | undefined
}

/** The windows of a calendar quota: a unit, for windows in UTC, or a unit with its time zone and first day. */
export type CalendarWindow = CalendarUnit | CalendarOptions

const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const

/**
 * The longest window of each unit, in days. A day more than the calendar has, as a zone that moves across the date line
 * has a day twice.
 */
const LONGEST_DAYS: Record<CalendarUnit, number> = { hour: 2, day: 2, week: 8, month: 32, year: 367 }

/** The longest that a window of the calendar can be, in seconds. */
export const longestSeconds = ({ every }: Calendar): number => LONGEST_DAYS[every] * 86_400

/**
 * @param name - of the option
 * @throws TypeError with the option's name, the rule, and the value with its type.
 */
export function resolveCalendar(window: CalendarWindow, name = 'window'): Calendar {
  const options = typeof window === 'string' ? { every: window } : window
  if (typeof options !== 'object' || options === null)
    throw optionError(name, '`hour`, `day`, `week`, `month`, `year` or an object', window)
  checkOptionNames(name, options, ['every', 'timeZone', 'startsOn'])
  const { every, timeZone = 'UTC', startsOn } = options as CalendarOptions
  if (typeof every !== 'string' || !Object.hasOwn(LONGEST_DAYS, every)) {
    const unit = typeof window === 'string' ? name : `${name}.every`
    throw optionError(unit, '`hour`, `day`, `week`, `month` or `year`', every)
  }
  checkTimeZone(`${name}.timeZone`, timeZone)
  const first = firstDayOf(every, startsOn, `${name}.startsOn`)
  // Part of stored keys, so a zone must not have two spellings; and what is kept of a zone is kept by its name.
  const zone = timeZone.toLowerCase()
  const id = `${every}${first === 1 ? '' : `.${first}`}${zone === 'utc' ? '' : `/${zone}`}`
  return new ZoneCalendar(every, id, zone, first)
}

/** The calendar of an id, as it stands in stored keys; null when it is none that this runtime knows. */
export function calendarOfId(id: string): Calendar | null {
  const [, every, first = '1', zone = 'utc'] =
    /^(hour|day|week|month|year)(?:\.(\d{1,2}))?(?:\/([a-z0-9_+/-]+))?$/.exec(id) ?? []
  if (every === undefined || !IANAZone.isValidZone(zone)) return null
  return new ZoneCalendar(every as CalendarUnit, id, zone, Number(first))
}

/** @throws TypeError unless it is a name of the time zone database that this runtime knows. */
export function checkTimeZone(name: string, value: unknown): asserts value is string {
  // Newer runtimes take offsets as well, such as +05:30, which are no place and know no daylight saving.
  const isName = typeof value === 'string' && /^[A-Za-z][A-Za-z0-9_+/-]{1,49}$/.test(value)
  if (!isName || !IANAZone.isValidZone(value)) throw optionError(name, 'an IANA time zone', value)
}

function firstDayOf(every: CalendarUnit, startsOn: unknown, name: string): number {
  if (startsOn === undefined) return 1
  if (every === 'week') {
    const day = WEEKDAYS.indexOf(startsOn as Weekday)
    if (day < 0) throw optionError(name, `one of ${WEEKDAYS.join(', ')}`, startsOn)
    return day + 1
  }
  if (every !== 'month') throw optionError(name, 'left out but for weeks and months', startsOn)
  if (!Number.isInteger(startsOn) || (startsOn as number) < 1 || (startsOn as number) > 31)
    throw optionError(name, 'a day of the month, 1 to 31', startsOn)
  return startsOn as number
}
