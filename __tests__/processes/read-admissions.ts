import type { TestDatabase } from '../servers/test-database.js'
import type { Admission } from './check-history.js'

/**
 * All that was admitted and is stored.
 *
 * @param first - a statement to send first on the same connection: by which a node of a cluster catches up
 */
export async function readAdmissions(database: TestDatabase, first = 'DO 0'): Promise<Admission[]> {
  const [, rows] = await database.query(
    `${first}; SELECT CONVERT(rkey USING utf8mb4) AS \`key\`, ts, hits FROM rate_events`,
  )
  return rows as unknown as Admission[]
}
