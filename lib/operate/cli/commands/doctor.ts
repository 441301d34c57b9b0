import { Command } from 'commander'
import { type Address, addressText } from '../address.js'
import type { Answer } from '../answer.js'
import { examineMysql, examineSqlite } from '../doctor/examine.js'
import type { Finding } from '../doctor/finding.js'
import { findingsText } from '../doctor/findings-text.js'
import { EXIT } from '../exit-code.js'
import type { Invocation } from '../invocation.js'
import { countText } from '../number-text.js'
import type { MysqlTarget } from '../open-mysql-target.js'
import type { SqliteTarget } from '../open-sqlite-target.js'
import type { Target } from '../target.js'

const HELP = `
Looks for whatever keeps limits from holding, or makes them slow: version, privileges, settings, clock, schema and indexes,
size, latency, connections, clusters; for SQLite the file, its rights, its disk and its file system. Each finding says what to
do, with statements to copy. It changes nothing; to time decisions it makes some on a key of its own and removes that.

  ok       as it should be
  note     the limiter works; worth knowing
  WARNING  it works, but something will hurt
  PROBLEM  it does not work, or is not exact

Ends with 0 when there is no warning and no problem, else with 1; with 3 when the database cannot be reached.

Examples:
  $ express-sql-rate-limit doctor
  $ express-sql-rate-limit doctor --quiet                   # for cron: what is not ok only
  $ express-sql-rate-limit doctor --ignore sql_mode,binlog  # these are known, and do not count
  $ express-sql-rate-limit doctor --json | jq '.findings[] | select(.level == "problem")'`

interface DoctorOptions {
  readonly write: boolean
  readonly quiet?: boolean
  readonly ignore?: string
}

/** `doctor`: looks for what is wrong, and says what to do. */
export const doctorCommand = ({ onDatabase }: Invocation): Command =>
  new Command('doctor')
    .summary('look for what is wrong, and say what to do')
    .option('--ignore <checks>', 'do not count these findings; their names with commas between them')
    .option('--no-write', 'make no decisions, so that nothing at all is written')
    .option('-q, --quiet', 'show what is not ok only')
    .addHelpText('after', HELP)
    .action((options: DoctorOptions) =>
      onDatabase((target, address) => doctor(target, address, options), { prepare: false }),
    )

async function doctor(target: Target, address: Address, options: DoctorOptions): Promise<Answer> {
  const { write, quiet = false, ignore = '' } = options
  const { server, findings } =
    address.kind === 'mysql'
      ? await examineMysql(target as MysqlTarget, address, write)
      : await examineSqlite(target as SqliteTarget, write)
  const ignored = new Set(ignore.split(',').map((name) => name.trim()))
  const isCounted = ({ check, level }: Finding): boolean =>
    (level === 'warning' || level === 'problem') && !ignored.has(check)
  const counted = findings.filter(isCounted)
  const shown = quiet
    ? findings.filter(({ level, check }) => level !== 'ok' && !ignored.has(check))
    : findings
  const verdict =
    counted.length === 0 ? 'Nothing is wrong.' : `${countText(counted.length, 'finding')} to see to.`
  return {
    text: [
      `${server} at ${addressText(address)}`,
      '',
      ...(shown.length > 0 ? [findingsText(shown), ''] : []),
      verdict,
    ].join('\n'),
    json: { server, isHealthy: counted.length === 0, findings },
    exitCode: counted.length === 0 ? EXIT.fine : EXIT.finding,
  }
}
