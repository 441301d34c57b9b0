import { inspect } from 'node:util'

/** The value as it is told to the programmer: short, on one line, with its type. */
const shown = (value: unknown): string => {
  const text = inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 60 })
  return `${text} (${value === null ? 'null' : typeof value})`
}

/** The error for a wrong option: its name, the rule, the value and its type. Options never fall back in silence. */
export const optionError = (name: string, rule: string, value: unknown): TypeError =>
  new TypeError(`Expected \`${name}\` to be ${rule}, got ${shown(value)}`)

/** @throws TypeError when `options` is no object or has a key that is not known: most often a misspelling. */
export function checkOptionNames(owner: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null)
    throw optionError(`the options of ${owner}`, 'an object', options)
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    throw new TypeError(`Unknown option \`${name}\` of ${owner}. It has: ${known.join(', ')}`)
  }
}

/** @throws TypeError unless the value is true or false. */
export function checkBoolean(name: string, value: unknown): asserts value is boolean {
  if (typeof value !== 'boolean') throw optionError(name, 'true or false', value)
}

/** @throws TypeError unless the value is false or a number of seconds from 1 to a day. */
export function checkSweepSeconds(value: unknown): asserts value is number | false {
  const valid = value === false || (typeof value === 'number' && value >= 1 && value <= 86_400)
  if (!valid) throw optionError('sweepSeconds', 'false or a number from 1 to 86400', value)
}
