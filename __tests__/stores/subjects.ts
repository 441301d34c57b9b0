import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise'
import { MemoryStore, MysqlStore, SqliteStore } from '../../lib/index.js'
import { openSqlite } from '../../lib/stores/sqlite/open-sqlite.js'
import type { TestDatabase } from '../servers/test-database.js'
import { START, type Subject } from './subject.js'

const COUNT_KEYS = 'SELECT COUNT(*) AS n FROM rate_keys'
const COUNT_EVENTS = 'SELECT COUNT(*) AS n FROM rate_events'

export async function openMemory(options: { maxEntries?: number } = {}): Promise<Subject> {
  let millis = START
  const store = new MemoryStore({ sweepSeconds: false, clock: () => millis, ...options })
  return {
    store,
    setClock: async (to) => {
      millis = to
    },
    size: async () => store.size,
    close: () => store.close(),
  }
}

/** A SQLite file that is new to this test. */
export async function openSqliteFile(
  filename: string,
  options: { keepUsageSeconds?: Record<string, number> } = {},
): Promise<Subject> {
  let millis = START
  const store = new SqliteStore({ filename, sweepSeconds: false, clock: () => millis, ...options })
  return {
    store,
    setClock: async (to) => {
      millis = to
    },
    size: async () => {
      const database = await openSqlite(filename)
      const count = (sql: string): number => (database.prepare(sql).get() as { n: number }).n
      const size = { keys: count(COUNT_KEYS), events: count(COUNT_EVENTS) }
      database.close()
      return size
    },
    close: () => store.close(),
  }
}

/**
 * An emptied database on a real server. The clock is moved by `SET timestamp` on the pool's one connection, which is
 * what UTC_TIMESTAMP then goes by.
 */
export async function openMysql(
  database: TestDatabase,
  options: {
    multipleStatements?: boolean
    setting?: string
    keepUsageSeconds?: Record<string, number>
  } = {},
): Promise<Subject> {
  const { multipleStatements = true, setting, keepUsageSeconds } = options
  for (const table of ['rate_keys', 'rate_events', 'rate_usage', 'rate_usage_limits', 'rate_limit_schema']) {
    await database.query(`DROP TABLE IF EXISTS ${table}`)
  }
  const pool: Pool = createPool({ uri: database.uri, connectionLimit: 1, multipleStatements })
  if (setting !== undefined) await pool.query(setting)
  const store = new MysqlStore({ pool, sweepSeconds: false, keepUsageSeconds })
  const count = async (sql: string): Promise<number> => {
    const [row] = await database.query<RowDataPacket[]>(sql)
    return row?.n
  }
  return {
    store,
    setClock: async (to) => {
      await pool.query(`SET timestamp = ${(to / 1000).toFixed(6)}`)
    },
    size: async () => ({ keys: await count(COUNT_KEYS), events: await count(COUNT_EVENTS) }),
    close: async () => {
      await store.close()
      await pool.end()
    },
  }
}
