import { parseArgs } from 'node:util'
import { type ServerKind, serverKinds } from '../../__tests__/servers/server.js'

/** What a load test was asked to do. */
export interface LoadOptions {
  readonly server: ServerKind
  /** 10 to 3600. */
  readonly seconds: number
}

/**
 * Reads the command line. Null when help is asked for.
 *
 * @throws TypeError for an unknown or wrong option.
 */
export function parseOptions(args: readonly string[]): LoadOptions | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      server: { type: 'string', default: 'mysql' },
      seconds: { type: 'string', default: '600' },
    },
  })
  if (values.help) return null
  const server = serverKinds.find((kind) => kind === values.server)
  if (server === undefined)
    throw new TypeError(`Expected --server to be ${serverKinds.join(' or ')}, got \`${values.server}\``)
  const seconds = Number(values.seconds)
  if (!Number.isInteger(seconds) || seconds < 10 || seconds > 3600)
    throw new TypeError(`Expected --seconds to be a whole number from 10 to 3600, got \`${values.seconds}\``)
  return { server, seconds }
}

/** What `--help` prints. */
export const HELP = `npm run test:load -- [--server mysql] [--seconds 600]

Four processes hit 20,000 keys of a server of their own as fast as the machine can, with refunds, resets and sweeps,
while one of them is killed and replaced every minute, or every 30 seconds in a run of less than five minutes.

  --server   mysql or mariadb: which one is started
  --seconds  how long, 10 to 3600; memory and tables say something from 120 on
  --help     this text

It holds when no window held more than its limit and no hit was denied without need, by the clock of the database; when
no caller was told of an error; when the processes hold no more memory at the end than after they had warmed up; and when
the tables hold no rows but those of the windows and what waits for the next sweep.

Ends with 0: it holds, 1: it does not, 2: it could not be run.
`
