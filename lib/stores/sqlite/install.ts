import { USAGE_TABLES } from '../kept-usage.js'
import { SQLITE_SCHEMA } from '../schema.js'
import { StoreError } from '../store-error.js'
import type { SqliteDatabase } from './open-sqlite.js'

const FILES = SQLITE_SCHEMA.map(({ file }) => file).join(', ')

/** What each table must have: read from the schema files, so that they are its only description. */
const TABLES = SQLITE_SCHEMA.flatMap(({ sql }) =>
  Array.from(sql.matchAll(/CREATE TABLE IF NOT EXISTS (\w+) \(\n([\s\S]*?)\n\)/g), ([, name, body]) => ({
    name: name as string,
    columns: Array.from(
      (body as string).matchAll(/^ {2}(\w+) (?:BLOB|INTEGER)[^\n,]*/gm),
      ([text, column]) => ({
        name: column as string,
        text: (text as string).trim(),
      }),
    ),
  })),
)

/**
 * @param keepsUsage - whether the tables of usage are needed
 * @throws StoreError `ERR_STORE_SCHEMA` that names what is missing and the statement that fixes it.
 */
export function checkSchema(database: SqliteDatabase, keepsUsage = true): void {
  const missing: string[] = []
  const fixes: string[] = []
  for (const table of TABLES) {
    if (USAGE_TABLES.includes(table.name) && !keepsUsage) continue
    const found = database.prepare(`SELECT name FROM pragma_table_info('${table.name}')`).all() as {
      name: string
    }[]
    if (found.length === 0) {
      missing.push(`table ${table.name} is missing`)
      fixes.push(`sqlite3 your_file < ${FILES}`)
      continue
    }
    const names = new Set(found.map(({ name }) => name))
    for (const { name, text } of table.columns) {
      if (names.has(name)) continue
      missing.push(`column ${table.name}.${name} is missing`)
      fixes.push(`ALTER TABLE ${table.name} ADD COLUMN ${text};`)
    }
  }
  if (missing.length === 0) return
  throw new StoreError(
    'ERR_STORE_SCHEMA',
    `The rate limiter's schema does not fit: ${missing.join('; ')}. Run:\n${[...new Set(fixes)].join('\n')}`,
  )
}

/** Creates the tables that are missing, in one transaction, then checks all. */
export function installSchema(database: SqliteDatabase): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    for (const { sql } of SQLITE_SCHEMA) database.exec(sql)
    database.exec('COMMIT')
  } catch (error) {
    database.exec('ROLLBACK')
    // A table of ours without a column of ours: say which.
    checkSchema(database)
    throw error
  }
  checkSchema(database)
}
