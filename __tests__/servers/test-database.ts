import { randomUUID } from 'node:crypto'
import { createConnection, createPool, type QueryResult, type RowDataPacket } from 'mysql2/promise'
import type { ServerInfo, ServerKind } from './server.js'
import { testServer } from './test-servers.js'

/** A database that one test file has for itself. */
export interface TestDatabase {
  readonly kind: ServerKind
  readonly name: string
  /** With the database: `mysql://root@127.0.0.1:20123/rate_limit_test_…`. */
  readonly uri: string
  /** Runs a query, or several separated by `;`, and returns what mysql2 gives as the first of its pair. */
  query<Result extends QueryResult = RowDataPacket[]>(sql: string, values?: unknown[]): Promise<Result>
  /** Removes the database and closes the connections of {@link query}. */
  drop(): Promise<void>
  /**
   * Closes the connections only: keeps the database, for a look at it after a failure on a server that stays.
   */
  close(): Promise<void>
}

/**
 * Creates an empty database with a unique name on a server of this run, or on one that the test started
 * itself.
 *
 * @example
 * const database = await createTestDatabase('mysql')
 * const pool = createPool(database.uri)
 * const [row] = await database.query('SELECT DATABASE() AS name')
 * await pool.end()
 * await database.drop()
 */
export async function createTestDatabase(
  server: ServerKind | Pick<ServerInfo, 'kind' | 'uri'>,
): Promise<TestDatabase> {
  const found = typeof server === 'string' ? testServer(server) : server
  if (!found) throw new Error(`This run has no ${server} server: ask testServers() which it has`)
  const name = `rate_limit_test_${randomUUID().replaceAll('-', '')}`
  const url = new URL(found.uri)
  url.pathname = `/${name}`
  const uri = url.href

  const client = await createConnection({ uri: found.uri })
  await client.query(`CREATE DATABASE ${name}`).finally(() => client.end())
  const pool = createPool({ uri, connectionLimit: 4, multipleStatements: true })
  return {
    kind: found.kind,
    name,
    uri,
    async query<Result extends QueryResult = RowDataPacket[]>(sql: string, values?: unknown[]) {
      const [result] = await pool.query<Result>(sql, values)
      return result
    },
    async drop() {
      await pool.query(`DROP DATABASE ${name}`).finally(() => pool.end())
    },
    close: () => pool.end(),
  }
}
