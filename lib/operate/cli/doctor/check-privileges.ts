import type { StoreError } from '../../../stores/store-error.js'
import { type Finding, ok, problem } from './finding.js'
import type { MysqlFacts } from './mysql-facts.js'

/**
 * Statements that need a privilege and do nothing: no row fits, so none is read, locked or written. Grants can come by
 * roles and wildcards, so asking the server to do it is the only sure way to know.
 */
const TRIALS = {
  SELECT: (table: string, column: string) => `SELECT ${column}\nFROM ${table}\nWHERE 1 = 0`,
  INSERT: (table: string, column: string) =>
    `INSERT INTO ${table} (${column})\nSELECT 0\nFROM DUAL\nWHERE 1 = 0`,
  UPDATE: (table: string, column: string) => `UPDATE ${table}\nSET ${column} = 0\nWHERE 1 = 0`,
  DELETE: (table: string) => `DELETE FROM ${table}\nWHERE 1 = 0`,
} as const

/** The tables, and the first column of each, which an INSERT must name. */
const TABLES = { rate_keys: 'rkey', rate_events: 'rkey', rate_limit_schema: 'id' } as const

/** 1142 and 1143: a privilege on a table, or on a column of it, is missing. 1044: on the database. */
const DENIED = new Set<unknown>([1142, 1143, 1044])

/** Which privileges the account lacks. A table that it has no right to at all looks like one that is missing. */
export async function checkPrivileges(facts: MysqlFacts): Promise<Finding> {
  const { query, account, database } = facts
  const lacking = new Map<string, string[]>()
  for (const [table, column] of Object.entries(TABLES)) {
    for (const [privilege, statement] of Object.entries(TRIALS)) {
      try {
        await query(statement(table, column), [])
      } catch (error) {
        // Any other refusal, as of a read-only server, comes after the privilege was found there.
        const { errno } = ((error as StoreError).cause ?? {}) as { errno?: unknown }
        if (DENIED.has(errno)) lacking.set(table, [...(lacking.get(table) ?? []), privilege])
      }
    }
  }
  if (lacking.size === 0) return ok('privileges', `${account} may do everything that decisions need.`)
  const all = Array.from(lacking, ([table, list]) => `${list.join(', ')} on ${table}`).join('; ')
  return problem(
    'privileges',
    `${account} lacks ${all}.`,
    'Have this run by a user who may GRANT. In a hosting panel: give the database user these rights on the database.',
    Array.from(
      lacking,
      ([table, list]) =>
        `GRANT ${list.join(', ')} ON ${quoted(database)}.${table} TO ${accountName(account)};`,
    ),
  )
}

const quoted = (name: string): string => `\`${name.replaceAll('`', '``')}\``

/** `app@%` as GRANT wants it. A host has no @ in it; a user's name may. */
function accountName(account: string): string {
  const at = account.lastIndexOf('@')
  const text = (part: string): string => `'${part.replaceAll("'", "''")}'`
  return `${text(account.slice(0, at))}@${text(account.slice(at + 1))}`
}
