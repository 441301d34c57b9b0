import { StoreError } from '../store-error.js'

/** A value of a key column or a whole number. */
export type SqliteValue = Uint8Array | number

/** A prepared statement; both drivers have this much in common. */
export interface SqliteStatement {
  get(...values: SqliteValue[]): unknown
  all(...values: SqliteValue[]): unknown[]
  run(...values: SqliteValue[]): { changes: number | bigint }
}

/** An open database file; both drivers have this much in common. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
  close(): void
}

type SqliteClass = new (filename: string) => SqliteDatabase

/**
 * Opens a file, or `:memory:`, with `node:sqlite` where this Node has it (22.13 and later), else with the package
 * better-sqlite3. Loaded only here, so that applications on MySQL need neither.
 *
 * @throws StoreError `ERR_STORE_CONFIG` when neither is there, `ERR_STORE_CONNECTION` when the file cannot be opened.
 */
export async function openSqlite(filename: string): Promise<SqliteDatabase> {
  const Sqlite = await findDriver()
  try {
    return new Sqlite(filename)
  } catch (cause) {
    throw new StoreError('ERR_STORE_CONNECTION', 'The SQLite file cannot be opened', { cause })
  }
}

async function findDriver(): Promise<SqliteClass> {
  // A variable, so that neither compilers nor bundlers look for it where it does not exist.
  const builtin = 'node:sqlite'
  try {
    return (await import(builtin)).DatabaseSync
  } catch {
    // This Node has none.
  }
  try {
    return (await import('better-sqlite3')).default
  } catch (cause) {
    throw new StoreError(
      'ERR_STORE_CONFIG',
      'SqliteStore needs Node.js 22.13 or later, or the package better-sqlite3: npm install better-sqlite3@12',
      { cause },
    )
  }
}
