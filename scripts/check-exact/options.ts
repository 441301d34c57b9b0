import { parseArgs } from 'node:util'
import { hostAddresses } from '../../lib/stores/mysql/hosts.js'

/** Where the processes count: what the stores take. */
export type Place =
  | { readonly uri: string; readonly multipleStatements: boolean }
  | { readonly filename: string }

/** What a check was asked to do. */
export interface CheckOptions {
  readonly place: Place
  /** 1 to 64. */
  readonly processes: number
  /** How long they hit, 1 to 300. */
  readonly seconds: number
  /** Check the limiter that people write by hand instead of ours: for the test that a wrong one is found. */
  readonly byHand: boolean
}

/**
 * Reads the command line. Null when help is asked for.
 *
 * @throws TypeError for an unknown or wrong option.
 */
export function parseOptions(args: readonly string[]): CheckOptions | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      url: { type: 'string' },
      processes: { type: 'string', default: '4' },
      seconds: { type: 'string', default: '30' },
      'single-statements': { type: 'boolean', default: false },
      'by-hand': { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  return {
    place: placeOf(values.url, !values['single-statements']),
    processes: wholeNumber('processes', values.processes, 64),
    seconds: wholeNumber('seconds', values.seconds, 300),
    byHand: values['by-hand'],
  }
}

function placeOf(url: string | undefined, multipleStatements: boolean): Place {
  if (url === undefined || url === '')
    throw new TypeError('Say where to count: --url mysql://… or --url file.sqlite')
  if (url.startsWith('mysql:')) {
    const addresses = hostAddresses(url)
    if (addresses === null || addresses.some((address) => new URL(address).pathname.length < 2)) {
      // Not shown: it may hold a password.
      throw new TypeError('Expected --url to be like mysql://user:password@host:3306/database')
    }
    return { uri: url, multipleStatements }
  }
  const filename = url.replace(/^sqlite:/, '')
  if (/^\w+:\/\//.test(filename) || filename === ':memory:' || filename === '') {
    throw new TypeError('Expected --url to begin with mysql:// or to be a file, as in sqlite:limits.sqlite')
  }
  return { filename }
}

function wholeNumber(name: string, text: string, most: number): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1 || value > most) {
    throw new TypeError(`Expected --${name} to be a whole number from 1 to ${most}, got \`${text}\``)
  }
  return value
}

/** What `--help` prints. */
export const HELP = `npm run check:exact -- --url <place> [--processes 4] [--seconds 30] [--single-statements]

Lets several processes hit limits of 5 a second on your database as fast as they can, and checks afterwards
whether any second held more than 5, and whether any hit was refused without need.

  --url        mysql://user:password@host:3306/database, also with several hosts with commas between them,
               also through your proxy or load balancer; or a SQLite file: limits.sqlite, sqlite:limits.sqlite
  --processes  how many processes hit at once, 1 to 64
  --seconds    how long, 1 to 300
  --single-statements  sends each statement on its own, as your proxy may need it: multipleStatements: false
  --help       this text

Two witnesses are heard. The rows, with the times of the database's own clock, to the microsecond. And what the
processes themselves were told and when, by the clock of this machine, without a look into the database. What the
database could not decide (lost connections, a restart, a failover) is counted apart: it is neither admitted nor refused.

It creates the limiter's three tables if they are missing, and leaves those. Its rows have keys of their own, which
begin with check-exact- and a random number, and are removed at the end, also after Ctrl-C. No other row is touched.

Ends with 0: exact, 1: not exact, 2: could not be run.
`
