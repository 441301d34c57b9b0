import fc from 'fast-check'
import type { CalendarOptions, CalendarWindow } from '../../lib/index.js'
import { calendarOfId, resolveCalendar } from '../../lib/limiter/calendar-options.js'
import { WallClock } from './wall-clock.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const MICROS = 1000

/** The window as times in UTC. */
const told = (window: CalendarWindow, at: string): string => {
  const { start, end } = resolveCalendar(window).windowAt(Date.parse(at) * MICROS)
  return `${shortened(start)} – ${shortened(end)}`
}
const shortened = (micros: number): string =>
  new Date(micros / MICROS).toISOString().replace(/:00\.000Z$/, 'Z')

/** Zones at the times of their most awkward days. */
const AWKWARD = [
  ['America/Sao_Paulo', '2018-11-04', 'skips midnight'],
  ['America/Sao_Paulo', '2018-02-18', 'has the hour before midnight twice'],
  ['America/Havana', '2024-11-03', 'has midnight twice'],
  ['America/St_Johns', '2010-11-07', 'goes back to the day before, a minute after midnight'],
  ['Pacific/Apia', '2011-12-30', 'leaves out a whole day'],
  ['Pacific/Kwajalein', '1993-08-21', 'leaves out a whole day'],
  ['Africa/Casablanca', '2026-02-15', 'goes back for Ramadan'],
  ['Africa/Casablanca', '2026-03-22', 'goes forward after Ramadan'],
  ['Asia/Kathmandu', '2026-05-01', 'is three quarters of an hour off'],
  ['Asia/Kathmandu', '1986-01-01', 'moves by a quarter of an hour at midnight'],
  ['Australia/Lord_Howe', '2026-04-05', 'goes back by half an hour'],
  ['Australia/Lord_Howe', '2026-10-04', 'goes forward by half an hour'],
  ['Europe/Berlin', '2026-03-29', 'has a day of 23 hours'],
  ['Europe/Berlin', '2026-10-25', 'has a day of 25 hours'],
  ['Asia/Beirut', '2026-03-29', 'skips midnight'],
  ['Africa/Cairo', '2026-04-24', 'skips midnight'],
  ['America/Asuncion', '2024-10-06', 'skips midnight'],
  ['Asia/Pyongyang', '2018-05-05', 'moves by half an hour before midnight'],
  ['Antarctica/Casey', '2018-03-11', 'goes back by three hours'],
  ['Antarctica/Troll', '2026-03-29', 'goes forward by two hours'],
  ['UTC', '2024-02-29', 'has a leap day'],
] as const

const CALENDARS: Omit<CalendarOptions, 'timeZone'>[] = [
  { every: 'hour' },
  { every: 'day' },
  { every: 'week' },
  { every: 'week', startsOn: 'sunday' },
  { every: 'month' },
  { every: 'month', startsOn: 31 },
  { every: 'year' },
]

describe('the windows of a calendar', () => {
  it.each(AWKWARD)(
    'of %s around %s, when it %s, are those that a clock on the wall shows',
    (timeZone, day) => {
      const clock = new WallClock(timeZone)
      for (const options of CALENDARS) {
        const calendar = resolveCalendar({ ...options, timeZone })
        for (let at = Date.parse(day) - 2 * DAY; at < Date.parse(day) + 2 * DAY; at += 75 * 60_000 + 1) {
          const { start, end } = clock.windowAt(options, at)
          const window = calendar.windowAt(at * MICROS)
          expect({ at, options, ...window }).toEqual({
            at,
            options,
            start: start * MICROS,
            end: end * MICROS,
          })
        }
      }
    },
  )

  it('of every zone there is, at any time since 1973, are those that a clock on the wall shows', () => {
    const zones = Intl.supportedValuesOf('timeZone')
    const clocks = new Map<string, WallClock>()
    const property = fc.property(
      fc.constantFrom(...zones),
      fc.constantFrom(...CALENDARS),
      fc.integer({ min: Date.UTC(1973, 0, 1), max: Date.UTC(2037, 0, 1) }),
      (timeZone, options, at) => {
        const clock = clocks.get(timeZone) ?? new WallClock(timeZone)
        clocks.set(timeZone, clock)
        const { start, end } = clock.windowAt(options, at)
        const window = resolveCalendar({ ...options, timeZone }).windowAt(at * MICROS)
        expect(window).toEqual({ start: start * MICROS, end: end * MICROS })
      },
    )
    fc.assert(property, { numRuns: 300 })
  }, 120_000)

  it('follow each other without a gap, to the microsecond', () => {
    for (const [timeZone, day] of AWKWARD) {
      for (const options of CALENDARS) {
        const calendar = resolveCalendar({ ...options, timeZone })
        const other = resolveCalendar({ ...options, timeZone })
        let window = calendar.windowAt((Date.parse(day) - 3 * DAY) * MICROS)
        for (let i = 0; i < 6; i += 1) {
          const next = other.windowAt(window.end)
          expect(next.start).toBe(window.end)
          expect(next.end).toBeGreaterThan(next.start)
          expect(calendar.windowAt(window.end - 1)).toEqual(window)
          expect(calendar.windowAt(next.start)).toEqual(next)
          window = next
        }
      }
    }
  })

  it('are what people would say', () => {
    expect(told('day', '2026-11-30T23:59:59.999Z')).toBe('2026-11-30T00:00Z – 2026-12-01T00:00Z')
    expect(told('month', '2024-02-29T12:00Z')).toBe('2024-02-01T00:00Z – 2024-03-01T00:00Z')
    expect(told('week', '2026-11-29T12:00Z')).toBe('2026-11-23T00:00Z – 2026-11-30T00:00Z')
    expect(told('year', '2026-06-01T00:00Z')).toBe('2026-01-01T00:00Z – 2027-01-01T00:00Z')
    expect(told({ every: 'hour', timeZone: 'Asia/Kathmandu' }, '2026-06-01T00:00Z')).toBe(
      '2026-05-31T23:15Z – 2026-06-01T00:15Z',
    )
    const berlin = { every: 'day', timeZone: 'Europe/Berlin' } as const
    expect(told(berlin, '2026-03-29T12:00Z')).toBe('2026-03-28T23:00Z – 2026-03-29T22:00Z')
    expect(told(berlin, '2026-10-25T12:00Z')).toBe('2026-10-24T22:00Z – 2026-10-25T23:00Z')
    const sunday = { every: 'week', startsOn: 'sunday' } as const
    expect(told(sunday, '2026-11-29T12:00Z')).toBe('2026-11-29T00:00Z – 2026-12-06T00:00Z')
  })

  it('leave out the day that Samoa did not have', () => {
    const apia = { every: 'day', timeZone: 'Pacific/Apia' } as const
    expect(told(apia, '2011-12-30T09:59Z')).toBe('2011-12-29T10:00Z – 2011-12-30T10:00Z')
    expect(told(apia, '2011-12-30T10:00Z')).toBe('2011-12-30T10:00Z – 2011-12-31T10:00Z')
  })

  it('begin with the last day of a month that is too short', () => {
    const on = (startsOn: number, at: string): string => told({ every: 'month', startsOn }, at)
    expect(on(31, '2026-02-27T00:00Z')).toBe('2026-01-31T00:00Z – 2026-02-28T00:00Z')
    expect(on(31, '2026-02-28T00:00Z')).toBe('2026-02-28T00:00Z – 2026-03-31T00:00Z')
    expect(on(30, '2024-02-29T00:00Z')).toBe('2024-02-29T00:00Z – 2024-03-30T00:00Z')
    expect(on(15, '2026-01-01T00:00Z')).toBe('2025-12-15T00:00Z – 2026-01-15T00:00Z')
  })

  it('have an id that tells them apart, and not two spellings of one zone', () => {
    const idOf = (window: CalendarWindow): string => resolveCalendar(window).id
    expect(idOf('day')).toBe('day')
    expect(idOf({ every: 'day', timeZone: 'utc' })).toBe('day')
    expect(idOf({ every: 'week', startsOn: 'sunday' })).toBe('week.7')
    expect(idOf({ every: 'month', startsOn: 1 })).toBe('month')
    expect(idOf({ every: 'month', startsOn: 15, timeZone: 'Europe/Berlin' })).toBe('month.15/europe/berlin')
    expect(idOf({ every: 'month', startsOn: 15, timeZone: 'europe/berlin' })).toBe('month.15/europe/berlin')
  })

  it('are found again by their id', () => {
    const at = Date.parse('2026-11-30T23:30Z') * MICROS
    for (const options of CALENDARS) {
      for (const timeZone of [
        'UTC',
        'America/Argentina/ComodRivadavia',
        'Etc/GMT+5',
        'Pacific/Port_Moresby',
      ]) {
        const calendar = resolveCalendar({ ...options, timeZone })
        expect(calendarOfId(calendar.id)?.windowAt(at)).toEqual(calendar.windowAt(at))
      }
    }
    for (const id of ['60', '0.5', 'day/europe/bonn', 'fortnight', '']) expect(calendarOfId(id)).toBeNull()
  })

  it.each([
    ['window', 'fortnight'],
    ['window', 7],
    ['window', null],
    ['window.every', { every: 'minute' }],
    ['window.every', {}],
    ['window.every', { every: 'constructor' }],
    ['window.timeZone', { every: 'day', timeZone: 'Europe/Bonn' }],
    ['window.timeZone', { every: 'day', timeZone: '+05:30' }],
    ['window.timeZone', { every: 'day', timeZone: '' }],
    ['window.timeZone', { every: 'day', timeZone: 60 }],
    ['window.startsOn', { every: 'week', startsOn: 1 }],
    ['window.startsOn', { every: 'week', startsOn: 'Sunday' }],
    ['window.startsOn', { every: 'month', startsOn: 0 }],
    ['window.startsOn', { every: 'month', startsOn: 32 }],
    ['window.startsOn', { every: 'month', startsOn: 1.5 }],
    ['window.startsOn', { every: 'month', startsOn: 'monday' }],
    ['window.startsOn', { every: 'day', startsOn: 1 }],
    ['window.startsOn', { every: 'year', startsOn: 4 }],
    ['zone', { every: 'day', zone: 'UTC' }],
  ])('take no wrong %s, such as %p', (option, window) => {
    expect(() => resolveCalendar(window as CalendarWindow)).toThrow(TypeError)
    expect(() => resolveCalendar(window as CalendarWindow)).toThrow(`\`${option}\``)
  })
})
