import { MYSQL_SCHEMA, SQLITE_SCHEMA } from '../../../stores/schema.js'
import type { Target } from '../target.js'
import { type Finding, note, ok, problem } from './finding.js'

/** Tables, columns, keys and indexes, as the store itself checks them; each fault is a finding. */
export async function checkSchema({ kind, schema, reader }: Target): Promise<Finding[]> {
  const { faults, statements } = await schema()
  if (faults.length > 0) {
    const missing = faults.some(({ missingTable }) => missingTable)
    const advice =
      missing && faults.every(({ missingTable }) => missingTable)
        ? 'Create the tables: express-sql-rate-limit install, with a user who may CREATE, or have these statements run. A table that is there is not seen without any right to it.'
        : kind === 'sqlite' && statements.length === 0
          ? 'SQLite changes no column in place: stop the application, move the file away and let it make a new one. Counters begin anew.'
          : 'Run these statements, or have them run by whoever may. On a large table that takes a while, in which decisions wait: choose a quiet hour.'
    const all = faults.map(({ what }) => what).join('; ')
    return [problem('schema', `${all[0]?.toUpperCase()}${all.slice(1)}.`, advice, statements)]
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
    ]
  }
  return [ok('schema', 'All tables, columns and indexes are there.')]
}
