import { SQLITE_SCHEMA } from '../../stores/schema.js'
import { openSqlite } from '../../stores/sqlite/open-sqlite.js'
import type { Query } from './reader.js'
import type { SchemaFault, SchemaReport } from './schema-fault.js'

/** One object of the schema, as SQLite itself describes it. */
interface Described {
  readonly name: string
  readonly table: string
  readonly create: string
  /** Of a table: `name type` of each column, and its place in the primary key behind it. */
  readonly columns: ReadonlyMap<string, string>
}

const OBJECTS = `-- tables and indexes that were created by a statement
SELECT type, name, tbl_name, sql
FROM sqlite_master
WHERE sql IS NOT NULL AND type IN ('table', 'index')`

const COLUMNS = `-- the columns of all tables
SELECT m.name AS table_name, c.name AS column_name, c.type, c.pk
FROM sqlite_master AS m
JOIN pragma_table_info(m.name) AS c
WHERE m.type = 'table'`

/**
 * Compares a database with what the schema files make of an empty one: SQLite reads both, so there is no second
 * description of the schema.
 */
export async function sqliteSchema(query: Query): Promise<SchemaReport> {
  const model = await openSqlite(':memory:')
  for (const { sql } of SQLITE_SCHEMA) model.exec(sql)
  const ofModel: Query = async (sql) =>
    model
      .prepare(sql)
      .all()
      .map((row) => Object.values(row as object))
  const wanted = await describe(ofModel)
  model.close()
  const found = await describe(query)

  const faults: SchemaFault[] = []
  const statements: string[] = []
  const report = (table: string, what: string, statement: string | null, missingTable = false): void => {
    faults.push({ table, what, missingTable })
    if (statement !== null) statements.push(statement)
  }
  for (const [name, { table, create, columns }] of wanted) {
    const there = found.get(name)
    if (there === undefined) {
      const isTable = name === table
      report(table, `${isTable ? 'table' : 'index'} ${name} is missing`, `${create};`, isTable)
      continue
    }
    for (const [column, description] of columns) {
      const is = there.columns.get(column)
      if (is === description) continue
      const what = `column ${table}.${column}`
      if (is === undefined)
        report(
          table,
          `${what} is missing`,
          `ALTER TABLE ${table} ADD COLUMN ${column} ${description} NOT NULL DEFAULT 0;`,
        )
      // SQLite changes no column in place.
      else report(table, `${what} is ${is}, not ${description}`, null)
    }
  }
  return { faults, statements }
}

async function describe(query: Query): Promise<Map<string, Described>> {
  const columns = new Map<string, Map<string, string>>()
  for (const [table, column, type, place] of await query(COLUMNS, [])) {
    const list = columns.get(String(table)) ?? new Map<string, string>()
    list.set(String(column), `${type}${Number(place) > 0 ? ` (${place} of the primary key)` : ''}`)
    columns.set(String(table), list)
  }
  const objects = await query(OBJECTS, [])
  return new Map(
    objects.map(([, name, table, create]) => [
      String(name),
      {
        ...{ name: String(name), table: String(table), create: String(create) },
        columns: columns.get(String(name)) ?? new Map(),
      },
    ]),
  )
}
