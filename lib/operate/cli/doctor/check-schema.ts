import { USAGE_TABLES } from '../../../stores/kept-usage.js'
import { MYSQL_SCHEMA, SQLITE_SCHEMA } from '../../../stores/schema.js'
import type { Target } from '../target.js'
import { type Finding, note, ok, problem } from './finding.js'

/** Tables, columns, keys and indexes, as the store itself checks them; each fault is a finding. */
export async function checkSchema({ kind, schema, reader }: Target): Promise<Finding[]> {
  const report = await schema()
  const lacking = report.faults.filter(
    ({ table, missingTable }) => missingTable && USAGE_TABLES.includes(table),
  )
  const lacksUsage = lacking.length > 0
  const isNeeded = (text: string): boolean => !lacksUsage || !text.includes('rate_usage')
  const faults = report.faults.filter(({ table }) => !lacksUsage || !USAGE_TABLES.includes(table))
  const statements = report.statements.filter(isNeeded)
  const usage = lacksUsage
    ? note(
        'usage',
        `There is no table ${lacking.map(({ table }) => table).join(', ')}, or no right to it.`,
        'It is needed only where a store has keepUsageSeconds. Then create it, with a user who may, and give the application SELECT, INSERT, UPDATE and DELETE on it:',
        report.statements.filter((statement) => !isNeeded(statement)),
      )
    : ok('usage', 'The table of usage is there, for stores with keepUsageSeconds.')
  if (faults.length > 0) {
    const missing = faults.some(({ missingTable }) => missingTable)
    const advice =
      missing && faults.every(({ missingTable }) => missingTable)
        ? 'Create the tables: express-sql-rate-limit install, with a user who may CREATE, or have these statements run. A table that is there is not seen without any right to it.'
        : kind === 'sqlite' && statements.length === 0
          ? 'SQLite changes no column in place: stop the application, move the file away and let it make a new one. Counters begin anew.'
          : 'Run these statements, or have them run by whoever may. On a large table that takes a while, in which decisions wait: choose a quiet hour.'
    const all = faults.map(({ what }) => what).join('; ')
    return [problem('schema', `${all[0]?.toUpperCase()}${all.slice(1)}.`, advice, statements), usage]
  }
  const version = kind === 'mysql' ? MYSQL_SCHEMA.length : SQLITE_SCHEMA.length
  const rows = await reader.query('SELECT version FROM rate_limit_schema WHERE id = 1', [])
  const found = rows[0] === undefined ? null : Number(rows[0][0])
  if (found !== null && found > version) {
    return [
      note(
        'schema',
        `The tables are of version ${found}, and this program knows ${version}.`,
        'A newer release of the package has made them. Update the package wherever an older one runs.',
      ),
      usage,
    ]
  }
  return [ok('schema', 'All tables, columns and indexes are there.'), usage]
}
