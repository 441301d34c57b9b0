import { Limiter, MysqlStore } from 'express-sql-rate-limit'
import { createTestDatabase, type TestDatabase } from '../../__tests__/servers/test-database.js'
import type { Servers } from '../section.js'

/** Our store on one of the servers, with a database of its own. */
export interface Subject {
  /** As tables and plots name it. */
  readonly server: 'MySQL' | 'MariaDB'
  readonly database: TestDatabase
  readonly store: MysqlStore
  /** A sliding window of an hour, with a deadline that no decision of a measurement may reach. */
  limiter(name: string, limit: number, windowSeconds?: number): Limiter
  /** Closes the store and removes the database. */
  end(): Promise<void>
}

/** The window of most measurements: nothing leaves it while they run. */
export const WINDOW_SECONDS = 3600

/** More than any measurement admits. */
export const AMPLE = 1_000_000_000

/** Opens one on each server, with the schema installed, swept only when it is told to. */
export async function openSubjects({ mysql, mariadb }: Servers): Promise<Subject[]> {
  return [await openSubject(mysql), await openSubject(mariadb)]
}

async function openSubject(server: Servers['mysql']): Promise<Subject> {
  const database = await createTestDatabase(server)
  const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
  await store.install()
  return {
    server: server.kind === 'mysql' ? 'MySQL' : 'MariaDB',
    database,
    store,
    limiter: (name, limit, windowSeconds = WINDOW_SECONDS) =>
      new Limiter({ store, name, limit, windowSeconds, timeoutMs: 20_000 }),
    async end() {
      await store.close()
      await database.drop()
    },
  }
}
