import type { Query } from '../reader.js'

/** What a server says of itself, read once. */
export interface MysqlFacts {
  readonly query: Query
  readonly version: string
  readonly isMariaDb: boolean
  /** The account that the server took us for, as in `app@%`. */
  readonly account: string
  readonly database: string
  /** Variables as a new session has them, by name in lower case. */
  readonly session: ReadonlyMap<string, string>
  /** Variables as the server was told for all. */
  readonly global: ReadonlyMap<string, string>
  readonly status: ReadonlyMap<string, string>
}

const STATUS = `SHOW STATUS
WHERE Variable_name LIKE 'wsrep%'
  OR Variable_name IN ('Threads_connected', 'Max_used_connections', 'Ssl_cipher', 'Uptime')`

/** Reads the facts. Must be the first on its connection, so that the session is as the application's begin. */
export async function mysqlFacts(query: Query): Promise<MysqlFacts> {
  const pairs = async (sql: string): Promise<Map<string, string>> =>
    new Map((await query(sql, [])).map(([name, value]) => [String(name).toLowerCase(), String(value ?? '')]))
  const [row = []] = await query('SELECT VERSION(), CURRENT_USER(), DATABASE()', [])
  const [version, account, database] = row.map(String) as [string, string, string]
  return {
    ...{ query, version, account, database },
    isMariaDb: /mariadb/i.test(version),
    session: await pairs('SHOW SESSION VARIABLES'),
    global: await pairs('SHOW GLOBAL VARIABLES'),
    status: await pairs(STATUS),
  }
}

/** Whether a variable is on, whichever way the server writes that. */
export const isOn = (value: string | undefined): boolean => /^(ON|1|YES|TRUE)$/i.test(value ?? '')

/** The name that the server is called by. */
export const serverName = ({ isMariaDb, version }: MysqlFacts): string =>
  `${isMariaDb ? 'MariaDB' : 'MySQL'} ${version}`
