import type { StoreInspection } from '../store.js'
import { type Connection, integer, type Rows } from './connection.js'
import type { Session } from './session.js'
import { int, NOW, ROLLBACK } from './statements.js'

/** Up to so many rows a table is counted: a few milliseconds. */
const MOST_COUNTED = 10_000

/** Reads an index from its beginning, and no further than needed. */
const countOf = (table: 'rate_keys' | 'rate_events'): string =>
  `SELECT COUNT(*) FROM (SELECT 1 FROM ${table} LIMIT ${int(MOST_COUNTED + 1)}) AS counted`

/** What InnoDB believes of the tables. */
const ESTIMATES = `SELECT TABLE_NAME, TABLE_ROWS, DATA_LENGTH + INDEX_LENGTH
FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('rate_keys', 'rate_events')`

/**
 * MySQL 8 and later repeat an estimate for a day unless the session says otherwise (and take no hint for it). Other servers
 * read no more of this than the second assignment. For sessions of ours: in those of others nothing is set.
 */
const FRESH_ESTIMATES = 'SET /*!80000 SESSION information_schema_stats_expiry = 0, */ @rate_limit_inspect = 1'

/** By primary key. */
const SWEEP = `SELECT sweep_until, ${NOW} FROM rate_limit_schema WHERE id = 1`

const CONNECTIONS = `SHOW GLOBAL STATUS LIKE 'Threads_connected'`
const MOST_CONNECTIONS = 'SELECT @@GLOBAL.max_connections'

/** Tells how large the tables are, without reading them, and how the server is. Writes nothing and locks nothing. */
export async function inspectUnit(connection: Connection, session: Session): Promise<StoreInspection> {
  const statements = [
    countOf('rate_keys'),
    countOf('rate_events'),
    ESTIMATES,
    SWEEP,
    CONNECTIONS,
    MOST_CONNECTIONS,
  ]
  const opening = session.own ? [...session.begin, FRESH_ESTIMATES] : session.begin
  const results = await connection.run([...opening, ...statements, ROLLBACK])
  const [keys, events, estimates, sweep, open, most] = results
    .slice(opening.length)
    .map(({ rows }) => rows) as [Rows, Rows, Rows, Rows, Rows, Rows]
  const estimated = new Map(estimates.map(([table, ...figures]) => [String(table), figures]))
  const rowsOf = (counted: Rows, table: string): { rows: number; exact: boolean } => {
    const rows = integer(counted[0]?.[0])
    if (rows <= MOST_COUNTED) return { rows, exact: true }
    return { rows: Math.max(rows, integer(estimated.get(table)?.[0] ?? 0)), exact: false }
  }
  const ofKeys = rowsOf(keys, 'rate_keys')
  const ofEvents = rowsOf(events, 'rate_events')
  // A sweep that has ended leaves its end there; before the first one there is nothing, and during one its lease.
  const until = integer(sweep[0]?.[0] ?? 0)
  const ended = until > 0 && until <= integer(sweep[0]?.[1] ?? 0)
  return {
    keys: ofKeys.rows,
    events: ofEvents.rows,
    precision: ofKeys.exact && ofEvents.exact ? 'exact' : 'estimate',
    bytes: [...estimated.values()].reduce((sum, [, bytes]) => sum + integer(bytes ?? 0), 0),
    sweptAt: ended ? Math.floor(until / 1000) : null,
    connections: { open: integer(open[0]?.[1]), most: integer(most[0]?.[0]) },
  }
}
