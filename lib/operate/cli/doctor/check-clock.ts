import { setTimeout as delay } from 'node:timers/promises'
import { durationText } from '../duration-text.js'
import { countText } from '../number-text.js'
import type { Reader } from '../reader.js'
import { type Finding, ok, problem, warning } from './finding.js'

/** How often the clock is read, and how long between, in milliseconds. */
const READINGS = 5
const BETWEEN_MS = 60
/** Clocks that are kept by NTP agree better than this, in milliseconds. */
const OFFSET_MS = 2_000
/** What a clock may lose or gain between two readings beside the time that they take, in milliseconds. */
const SLACK_MS = 30
/** A key whose newest hit lies so far in the future waits for the clock, in microseconds. */
const FUTURE_MICROS = 2_000_000
/** How many keys are looked at for that. */
const KEYS_LOOKED_AT = 1_000

interface Reading {
  /** The database's clock, in milliseconds since the epoch. */
  readonly database: number
  /** This machine's, at the middle of the reading. */
  readonly machine: number
  /** Monotonic, at the same moment. */
  readonly monotonic: number
  readonly roundTrip: number
}

/** The clock that decisions go by: against this machine's, and between readings. */
export async function checkClock(reader: Reader, initConnect: string): Promise<Finding> {
  const readings: Reading[] = []
  for (let i = 0; i < READINGS; i += 1) {
    if (i > 0) await delay(BETWEEN_MS)
    readings.push(await read(reader))
  }
  const [first, last] = [readings[0] as Reading, readings.at(-1) as Reading]
  const passed = last.monotonic - first.monotonic
  const shown = last.database - first.database
  const tolerance = SLACK_MS + passed / 10 + Math.max(...readings.map(({ roundTrip }) => roundTrip))
  const isBack = readings.some(({ database }, i) => i > 0 && database < (readings[i - 1] as Reading).database)
  if (shown === 0 || isBack || Math.abs(shown - passed) > tolerance) {
    const how =
      shown === 0 ? 'stands still' : isBack ? 'goes back' : "runs at another speed than this machine's"
    const because = initConnect === '' ? '' : ` New sessions run init_connect, which is: ${initConnect}.`
    return problem(
      'clock',
      `The database's clock ${how}: it moved by ${Math.round(shown)} ms within ${Math.round(passed)} ms. Windows never free then, or all at once.${because}`,
      'Decisions go by that clock. If something sets the variable "timestamp" for each session, take that out (init_connect, a proxy, the pool\'s own set-up). If the machine\'s clock is at fault, let it be kept by NTP (chrony, systemd-timesyncd).',
      /timestamp/i.test(initConnect) ? ["SET GLOBAL init_connect = '';"] : [],
    )
  }
  const offset = median(readings.map(({ database, machine }) => database - machine))
  const text = `${durationText(Math.abs(offset) / 1000)} ${offset < 0 ? 'behind' : 'ahead of'} this machine's`
  if (Math.abs(offset) > OFFSET_MS + last.roundTrip) {
    return warning(
      'clock',
      `The database's clock is ${text}.`,
      "Limits stay exact, since they go by the database's clock alone. But moments that are told to people (nextUseAt, the audit log, logs side by side) are off by that much. Let both machines keep their clocks by NTP (chrony, systemd-timesyncd).",
    )
  }
  return ok('clock', `It runs evenly, ${text}.`)
}

async function read(reader: Reader): Promise<Reading> {
  const machine = Date.now()
  const begun = performance.now()
  const database = (await reader.now()) / 1000
  const roundTrip = performance.now() - begun
  return { database, machine: machine + roundTrip / 2, monotonic: begun + roundTrip / 2, roundTrip }
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number

/** Keys that were written in the future of the clock, as it steps back. */
export async function checkFuture(reader: Reader): Promise<Finding> {
  const now = await reader.now()
  const rows = await reader.lasting(null, now, KEYS_LOOKED_AT)
  const ahead = rows.map(({ last }) => last - now).filter((micros) => micros > FUTURE_MICROS)
  if (ahead.length === 0) return ok('clock_steps', 'No key was written in the future.')
  const longest = durationText(Math.max(...ahead) / 1e6)
  return warning(
    'clock_steps',
    `${countText(ahead.length, 'key')} were written up to ${longest} in the future: the database's clock was set back.`,
    "What they count does not leave their windows until the clock is there again. Let the database's machine keep its clock by NTP. Do not wait for keys that matter: express-sql-rate-limit reset KEY.",
  )
}
