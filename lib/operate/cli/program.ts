import { Command } from 'commander'
import { blockCommand } from './commands/block.js'
import { doctorCommand } from './commands/doctor.js'
import { installCommand } from './commands/install.js'
import { resetCommand } from './commands/reset.js'
import { schemaCommand } from './commands/schema.js'
import { statusCommand } from './commands/status.js'
import { sweepCommand } from './commands/sweep.js'
import { topCommand } from './commands/top.js'
import { usageCommand } from './commands/usage.js'
import type { Invocation } from './invocation.js'

const HELP = `
Start here:
  $ export DATABASE_URL=mysql://user:password@host:3306/database
  $ express-sql-rate-limit doctor              # is everything as it should be?
  $ express-sql-rate-limit top                 # who is near a limit?
  $ express-sql-rate-limit status 203.0.113.9  # what is counted of one key?
  $ express-sql-rate-limit status --help       # each command explains itself

DATABASE_URL keeps a password out of the list of processes, which --url does not. It is mysql://… or mariadb://…, also with
several hosts (one:3306,two:3306), or a SQLite file: sqlite:limits.sqlite, or just its name.

Ends with 0: fine, 1: a finding (each command says which), 2: the command line is wrong, 3: the database could not be reached,
or refused. With --json there is exactly one JSON document on standard output, errors too.`

/** The commands, around what they are run by. */
export function createProgram(version: string, invocation: Invocation): Command {
  const program = new Command('express-sql-rate-limit')
    .description('Look at, steer and check the rate limits that an application keeps in its database.')
    .option('--url <address>', 'where the limiter counts; default: the variable DATABASE_URL')
    .option('--json', 'print one JSON document instead of text')
    .version(version, '--version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help')
    .addHelpText('after', HELP)
  const commands = [
    installCommand,
    schemaCommand,
    statusCommand,
    topCommand,
    resetCommand,
    blockCommand,
    sweepCommand,
    usageCommand,
    doctorCommand,
  ]
  for (const create of commands) {
    program.addCommand(
      create(invocation).helpOption('-h, --help', 'print help').configureHelp({ showGlobalOptions: true }),
    )
  }
  return program
}
