import { Command, Option } from 'commander'
import { MYSQL_SCHEMA, SQLITE_SCHEMA } from '../../../stores/schema.js'
import { EXIT } from '../exit-code.js'
import type { Invocation } from '../invocation.js'

const HELP = `
Prints the SQL that creates the limiter's tables: for a DBA to review, for phpMyAdmin, for your own migrations. It needs no
database. Every statement can be run again without harm. Afterwards the application needs no right to CREATE: give its store
install: false.

Examples:
  $ express-sql-rate-limit schema
  $ express-sql-rate-limit schema > rate-limit.sql
  $ express-sql-rate-limit schema | mysql -u root -p your_database
  $ express-sql-rate-limit schema --dialect sqlite | sqlite3 limits.sqlite

Without --dialect it is for the database of --url or DATABASE_URL, and for MySQL and MariaDB where neither is given.`

const SCHEMAS = { mysql: MYSQL_SCHEMA, mariadb: MYSQL_SCHEMA, sqlite: SQLITE_SCHEMA }

/** `schema`: prints the SQL of the tables. */
export const schemaCommand = ({ answer, databaseKind }: Invocation): Command =>
  new Command('schema')
    .summary('print the SQL of the tables')
    .addOption(new Option('--dialect <name>', 'for which database').choices(Object.keys(SCHEMAS)))
    .addHelpText('after', HELP)
    .action((options: { dialect?: keyof typeof SCHEMAS }) => {
      const dialect = options.dialect ?? databaseKind() ?? 'mysql'
      const files = SCHEMAS[dialect]
      answer({
        text: files.map(({ sql }) => sql.trimEnd()).join('\n\n'),
        json: { dialect, files },
        exitCode: EXIT.fine,
      })
    })
