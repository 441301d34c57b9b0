import { existsSync } from 'node:fs'
import { sqliteError } from '../../stores/sqlite/classify-error.js'
import { openSqlite } from '../../stores/sqlite/open-sqlite.js'
import { SqliteStore } from '../../stores/sqlite/sqlite-store.js'
import { StoreError } from '../../stores/store-error.js'
import { type Query, Reader } from './reader.js'
import { sqliteSchema } from './sqlite-schema.js'
import type { Target } from './target.js'

/** How long a reader waits where there is no WAL, in which readers wait for nobody. In milliseconds. */
const BUSY_MS = 3_000

/** A SQLite target. */
export interface SqliteTarget extends Target {
  readonly kind: 'sqlite'
  readonly filename: string
}

/**
 * Opens a SQLite file.
 *
 * @param mayCreate - whether the file may be made; else one that is missing is an error
 * @throws StoreError
 */
export async function openSqliteTarget(filename: string, mayCreate: boolean): Promise<SqliteTarget> {
  if (!mayCreate && !existsSync(filename)) {
    const cause = Object.assign(new Error('no such file'), { code: 'ENOENT' })
    throw new StoreError('ERR_STORE_CONNECTION', `There is no file ${filename}`, { cause })
  }
  const store = new SqliteStore({ filename, install: mayCreate, sweepSeconds: false })
  const database = await openSqlite(filename)
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
    // Whatever is sent here: the store alone writes.
    database.exec('PRAGMA query_only = ON')
  } catch (error) {
    database.close()
    throw sqliteError(error)
  }
  const query: Query = async (sql, values) => {
    try {
      return database
        .prepare(sql)
        .all(...values)
        .map((row) => Object.values(row as object))
    } catch (error) {
      throw sqliteError(error)
    }
  }
  let closing: Promise<void> | null = null
  const clock = async (): Promise<number> => Date.now() * 1000
  return {
    ...{ kind: 'sqlite', filename, store },
    reader: new Reader(query, { clock, byIndex: (index) => `INDEXED BY ${index}` }),
    schema: () => sqliteSchema(query),
    async prepare() {},
    close() {
      closing ??= store.close().then(() => database.close())
      return closing
    },
  }
}
