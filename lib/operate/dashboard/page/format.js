const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const options = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }
const clock = new Intl.DateTimeFormat('en', options)
const clockWithSeconds = new Intl.DateTimeFormat('en', { ...options, second: '2-digit' })
const day = new Intl.DateTimeFormat('en', { ...options, day: 'numeric', month: 'short' })

/** 12,345 */
export const number = (value) => numbers.format(value)

/** 0, 0.4, 12.5, 1,250: as many digits as say something. */
export const decimal = (value) =>
  value === 0 ? '0' : value < 100 ? value.toFixed(value < 10 ? 1 : 0).replace(/\.0$/, '') : number(value)

/** 0.12 ms, 3.4 ms, 250 ms */
export const milliseconds = (value) =>
  value < 1 ? value.toFixed(2) : value < 10 ? value.toFixed(1) : number(value)

/** 16:50 */
export const time = (at) => clock.format(at)
/** 16:50:05 */
export const timeWithSeconds = (at) => clockWithSeconds.format(at)

/** 16:50 of today, Nov 29, 16:50 of another day. */
export const date = (at) =>
  (new Date(at).toDateString() === new Date().toDateString() ? clock : day).format(new Date(at))

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
]

/** 12 s, 3 min, 5 h, 2 d: one unit, and never less than it is. */
export function duration(millis) {
  const [size, unit] = UNITS.find(([each]) => millis >= each) ?? [1000, 's']
  return `${Math.max(Math.ceil(millis / size), 0)} ${unit}`
}

/** 512 B, 1.5 kB, 20 MB */
export function bytes(value) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let rest = value
  let unit = 0
  for (; rest >= 1000 && unit < units.length - 1; unit += 1) rest /= 1000
  return `${decimal(rest)} ${units[unit]}`
}

const PERIODS = [
  [86_400, 'day', 'days'],
  [3_600, 'hour', 'h'],
  [60, 'minute', 'min'],
  [1, 'second', 's'],
]

/** minute, 15 min, 36 h, 0.5 s: in the largest unit that needs no fraction. */
function period(seconds) {
  const [size, one, many] = PERIODS.find(([each]) => seconds % each === 0) ?? PERIODS.at(-1)
  return seconds === size ? one : `${seconds / size} ${many}`
}

/** 100 per minute, sliding window */
export function rule({ limit, windowSeconds, algorithm, every }) {
  if (every !== null) return `${number(limit)} per ${every}, by the calendar`
  const window = algorithm === 'fixed-window' ? 'fixed window' : 'sliding window'
  return `${number(limit)} per ${period(windowSeconds)}, ${window}`
}

/** The longest key that is shown, in characters. */
const LONGEST = 200

/**
 * A key as it can be shown: what is invisible, or would turn the direction of the text around it, becomes its code, and
 * a long one is cut.
 */
export function shownKey(key) {
  const characters = Array.from(key.slice(0, LONGEST * 2))
  const text = characters
    .slice(0, LONGEST)
    .map((character) =>
      /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u.test(character)
        ? `\\u{${character.codePointAt(0).toString(16)}}`
        : character,
    )
    .join('')
  return characters.length > LONGEST || key.length > LONGEST * 2 ? `${text}…` : text
}
