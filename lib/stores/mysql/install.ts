import { USAGE_TABLES } from '../kept-usage.js'
import { MYSQL_SCHEMA } from '../schema.js'
import { StoreError } from '../store-error.js'
import type { Connection } from './connection.js'
import type { Session } from './session.js'
import { COMMIT, ROLLBACK } from './statements.js'

/** One line of a CREATE TABLE: a column, or a key. */
interface Definition {
  readonly name: string
  /** As written in the schema file. */
  readonly text: string
}

interface Table {
  readonly name: string
  readonly create: string
  readonly columns: readonly (Definition & { readonly type: string })[]
  readonly keys: readonly Definition[]
}

const withoutComments = (sql: string): string => sql.replace(/^\s*--.*$\n?/gm, '')

const statementsOf = (sql: string): string[] =>
  withoutComments(sql)
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')

/** The schema files are the only description of the schema: what to expect of a table is read from them. */
function parseTable(create: string): Table {
  const name = /^CREATE TABLE IF NOT EXISTS (\w+)/.exec(create)?.[1] as string
  const lines = create
    .split('\n')
    .slice(1, -1)
    .map((line) => line.trim().replace(/,$/, ''))
  const columns = []
  const keys = []
  for (const text of lines) {
    const key = /^(?:(PRIMARY) KEY|KEY (\w+)) /.exec(text)
    if (key) keys.push({ name: key[1] ?? (key[2] as string), text })
    else {
      const [column, type] = text.split(/\s+/) as [string, string]
      columns.push({ name: column, text, type: type.toLowerCase() })
    }
  }
  return { name, create, columns, keys }
}

const STATEMENTS = MYSQL_SCHEMA.flatMap(({ sql }) => statementsOf(sql))
const TABLES = STATEMENTS.filter((statement) => statement.startsWith('CREATE TABLE')).map(parseTable)
const TABLE_NAMES = TABLES.map(({ name }) => `'${name}'`).join(', ')
const FILES = MYSQL_SCHEMA.map(({ file }) => file).join(', ')

/** What the database has, of the tables we need: catalogue rows of one database, by table name. */
const CATALOGUE = [
  `SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (${TABLE_NAMES})`,
  `SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (${TABLE_NAMES})`,
  `SELECT TABLE_NAME, INDEX_NAME, GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX SEPARATOR ', ') FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (${TABLE_NAMES}) GROUP BY TABLE_NAME, INDEX_NAME`,
]

/** A difference between the schema and the database, and the statement that removes it. */
export interface Fault {
  readonly table: string
  /** In words: "column rate_keys.span is missing". */
  readonly what: string
  readonly fix: string
  readonly missingTable: boolean
}

/** Every difference between the schema files and the tables of the connection's database. */
export async function findFaults(connection: Pick<Connection, 'run'>): Promise<Fault[]> {
  // Rolled back at once: without autocommit a read leaves a snapshot open.
  const results = await connection.run([...CATALOGUE, ROLLBACK])
  const [tables = [], columns = [], keys = []] = results.map(({ rows }) => rows)
  const text = (value: unknown): string => String(value).toLowerCase()
  const engines = new Map(tables.map(([table, engine]) => [text(table), text(engine)]))
  const types = new Map(
    columns.map(([table, column, type, length]) => [
      `${text(table)}.${text(column)}`,
      length === null ? text(type) : `${text(type)}(${text(length)})`,
    ]),
  )
  const indexes = new Map(keys.map(([table, index, list]) => [`${text(table)}.${text(index)}`, text(list)]))

  return TABLES.flatMap((table): Fault[] => {
    const fault = (what: string, fix: string): Fault => ({
      table: table.name,
      what,
      fix,
      missingTable: false,
    })
    const engine = engines.get(table.name)
    if (engine === undefined) {
      return [{ ...fault(`table ${table.name} is missing`, table.create), missingTable: true }]
    }
    const faults: Fault[] = []
    if (engine !== 'innodb') {
      // Without transactions and row locks nothing here is exact.
      faults.push(fault(`table ${table.name} has engine ${engine}, not InnoDB`, 'ENGINE = InnoDB'))
    }
    for (const column of table.columns) {
      const type = types.get(`${table.name}.${column.name}`)
      if (type === undefined) {
        faults.push(fault(`column ${table.name}.${column.name} is missing`, `ADD COLUMN ${column.text}`))
      } else if (type !== column.type) {
        const what = `column ${table.name}.${column.name} is ${type}, not ${column.type}`
        faults.push(fault(what, `MODIFY COLUMN ${column.text}`))
      }
    }
    for (const key of table.keys) {
      const wanted = /\((.*)\)/.exec(key.text)?.[1]
      const found = indexes.get(`${table.name}.${key.name.toLowerCase()}`)
      if (found === wanted) continue
      const drop =
        found === undefined ? '' : key.name === 'PRIMARY' ? 'DROP PRIMARY KEY, ' : `DROP KEY ${key.name}, `
      const what = found === undefined ? 'is missing' : `is on (${found}), not (${wanted})`
      faults.push(fault(`key ${key.name} of ${table.name} ${what}`, `${drop}ADD ${key.text}`))
    }
    return faults
  })
}

/** The statements that mend the faults, one a table: the DBA copies them. */
export function fixesOf(faults: readonly Fault[]): string[] {
  const byTable = new Map<string, Fault[]>()
  for (const fault of faults) byTable.set(fault.table, [...(byTable.get(fault.table) ?? []), fault])
  return Array.from(byTable, ([table, list]) =>
    list[0]?.missingTable
      ? `${list[0].fix};`
      : `ALTER TABLE ${table} ${list.map(({ fix }) => fix).join(', ')};`,
  )
}

/** All faults in one error, with the statements that mend them. */
function schemaError(faults: readonly Fault[], cause?: unknown): StoreError {
  const fixes = fixesOf(faults)
  const what = faults.map((fault) => fault.what).join('; ')
  return new StoreError(
    'ERR_STORE_SCHEMA',
    `The rate limiter's schema does not fit: ${what}. Run ${FILES} of this package, or:\n${fixes.join('\n')}`,
    { cause },
  )
}

/** What matters of the faults: the tables of usage are not needed where none is kept. */
const neededOf = (faults: readonly Fault[], keepsUsage: boolean): Fault[] =>
  faults.filter(({ table }) => keepsUsage || !USAGE_TABLES.includes(table))

/**
 * @param keepsUsage - whether the tables of usage are needed
 * @throws StoreError `ERR_STORE_SCHEMA` with everything that is missing or different, and the statements that fix it.
 */
export async function checkSchema(connection: Connection, keepsUsage: boolean): Promise<void> {
  const faults = neededOf(await findFaults(connection), keepsUsage)
  if (faults.length > 0) throw schemaError(faults)
}

/**
 * Creates the tables that are missing, then checks all. Every statement is idempotent, so any number of processes
 * may do this at once. A user without CREATE is no obstacle when the tables that are needed are there (hazard 53).
 */
export async function installSchema(
  connection: Connection,
  session: Session,
  keepsUsage: boolean,
): Promise<void> {
  const faults = await findFaults(connection)
  const needed = neededOf(faults, keepsUsage)
  if (needed.some(({ missingTable }) => !missingTable)) throw schemaError(needed)
  if (!faults.some(({ missingTable }) => missingTable)) return
  try {
    for (const statement of STATEMENTS) {
      // Rows are written as the server can log them (hazard 44).
      const isCreate = statement.startsWith('CREATE')
      for (const each of isCreate ? [statement] : [...session.begin, statement, COMMIT])
        await connection.run([each])
    }
  } catch (error) {
    const { errno } = error as { errno?: unknown }
    // 1142 and 1044: not allowed to CREATE.
    if (errno !== 1142 && errno !== 1044) throw error
    await connection.run([ROLLBACK])
    if (needed.length > 0) throw schemaError(needed, error)
  }
  await checkSchema(connection, keepsUsage)
}
