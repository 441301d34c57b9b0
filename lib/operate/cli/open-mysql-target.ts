import { storeErrorOf } from '../../stores/mysql/classify-error.js'
import { integer } from '../../stores/mysql/connection.js'
import { findFaults, fixesOf } from '../../stores/mysql/install.js'
import { MysqlStore } from '../../stores/mysql/mysql-store.js'
import { NOW } from '../../stores/mysql/statements.js'
import { type Query, Reader } from './reader.js'
import type { Target } from './target.js'

/** How long a host may take to answer, and a statement to end, in milliseconds. */
const CONNECT_MS = 5_000
const STATEMENT_MS = 30_000

/** What we call of a pool of mysql2/promise. */
interface Pool {
  query(options: object): Promise<[unknown, unknown]>
  end(): Promise<void>
}

/** A database on MySQL or MariaDB. */
export interface MysqlTarget extends Target {
  readonly kind: 'mysql'
}

/**
 * Connects to the first of the hosts that answers.
 *
 * @throws StoreError of the last one, when none does
 */
export async function openMysqlTarget(uris: readonly string[]): Promise<MysqlTarget> {
  let failure: unknown
  for (const uri of uris) {
    try {
      return await connect(uri)
    } catch (error) {
      failure = error
    }
  }
  throw storeErrorOf(failure)
}

async function connect(uri: string): Promise<MysqlTarget> {
  const { createPool } = await import('mysql2/promise')
  const pool = createPool({ uri, connectionLimit: 1, connectTimeout: CONNECT_MS }) as unknown as Pool
  // Bytes become hexadecimal literals on their way, and numbers digits: nothing that a sql_mode could read otherwise.
  const query: Query = async (sql, values) => {
    try {
      const [rows] = await pool.query({ sql, values, rowsAsArray: true, timeout: STATEMENT_MS })
      return rows as unknown[][]
    } catch (error) {
      throw storeErrorOf(error)
    }
  }
  try {
    await query('SELECT 1', [])
  } catch (error) {
    await pool.end()
    throw error
  }
  const clock = async (): Promise<number> => {
    const rows = await query(`-- the clock that decisions go by\nSELECT ${NOW}`, [])
    return integer(rows[0]?.[0])
  }
  let closing: Promise<void> | null = null
  const store = new MysqlStore({ pool, install: false, sweepSeconds: false })
  return {
    ...{ kind: 'mysql', store },
    reader: new Reader(query, { clock, byIndex: (index) => `FORCE INDEX (${index})` }),
    async prepare() {
      // A SELECT of its own locks rows at SERIALIZABLE when a server has switched autocommit off. And a table that
      // somebody changes at the moment is told, not waited for.
      await query('SET SESSION autocommit = 1, lock_wait_timeout = 3, innodb_lock_wait_timeout = 3', [])
      await query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED', [])
    },
    async schema() {
      const run = async (statements: readonly string[]) => {
        const results = []
        for (const sql of statements) {
          const rows = await query(sql, [])
          results.push({ rows: Array.isArray(rows) ? rows : [], affectedRows: 0, insertId: 0 })
        }
        return results
      }
      const faults = await findFaults({ run })
      return { faults, statements: fixesOf(faults) }
    },
    close() {
      closing ??= store.close().then(() => pool.end())
      return closing
    },
  }
}
