import { Command } from 'commander'
import type { Answer } from '../answer.js'
import { EXIT } from '../exit-code.js'
import type { Invocation } from '../invocation.js'
import type { Target } from '../target.js'

const HELP = `
Creates the tables that are missing and checks the others, as the limiter does before its first decision. It needs the right to
CREATE. To have the SQL run by somebody else, see "schema". Running it again, also from several machines at once, does no harm.

A table that is there in another shape is not changed: it says which statements would mend it.

Examples:
  $ DATABASE_URL=mysql://admin:…@db:3306/app express-sql-rate-limit install
  $ express-sql-rate-limit install --url limits.sqlite`

/** `install`: creates the tables, as `store.install()` does. */
export const installCommand = ({ onDatabase }: Invocation): Command =>
  new Command('install')
    .summary('create the tables')
    .addHelpText('after', HELP)
    .action(() => onDatabase(install, { mayCreate: true }))

async function install({ schema, store }: Target): Promise<Answer> {
  const before = await schema()
  const created = before.faults.filter(({ missingTable }) => missingTable).map(({ table }) => table)
  await store.install()
  return {
    text: created.length === 0 ? 'The tables are there.' : `Created ${created.join(', ')}.`,
    json: { created },
    exitCode: EXIT.fine,
  }
}
