import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { MysqlStore } from '../../lib/index.js'
import { readAdmissions } from '../processes/read-admissions.js'
import type { PrivateServer, ServerKind } from '../servers/server.js'
import { startServer } from '../servers/start-server.js'
import { createTestDatabase, type TestDatabase } from '../servers/test-database.js'
import { startProxy, type TcpProxy } from './start-proxy.js'
import { type Scene, TIMEOUT_MS } from './survive.js'
import { Traffic } from './traffic.js'
import type { TrafficPlace } from './traffic-worker.js'

/** The most connections a store may have. */
const CONNECTIONS = 2

/** A server of its own behind a proxy, and traffic that counts there as a user without special rights. */
export interface ServerScene extends Scene {
  readonly server: PrivateServer
  readonly proxy: TcpProxy
  readonly database: TestDatabase
  /** The user's address, through the proxy. */
  readonly uri: string
  /** Runs statements as root, past the proxy, and gives the rows of the last. */
  sql(...statements: string[]): Promise<RowDataPacket[]>
  /** More traffic in a process of its own, by default as the scene's own. It ends with the scene. */
  openTraffic(place?: TrafficPlace, timeoutMs?: number): Promise<Traffic>
  /** How many connections the user has. */
  connections(): Promise<number>
  /** Ends every connection of the user, and tells how many there were. */
  killAll(): Promise<number>
  close(): Promise<void>
}

/** Starts a server with its proxy and its traffic. */
export async function openScene(kind: ServerKind): Promise<ServerScene> {
  const server = await startServer(kind)
  const proxy = await startProxy(server.port)
  const database = await createTestDatabase(server)
  const sql = async (...statements: string[]): Promise<RowDataPacket[]> => {
    const client = await createConnection(server.uri)
    try {
      let rows: RowDataPacket[] = []
      for (const statement of statements) [rows] = await client.query<RowDataPacket[]>(statement)
      return rows
    } finally {
      client.destroy()
    }
  }
  const threads = (): Promise<RowDataPacket[]> =>
    sql(`SELECT ID AS id FROM information_schema.PROCESSLIST WHERE USER = 'limiter'`)
  await sql(
    `CREATE USER limiter@'%' IDENTIFIED BY 'secret'`,
    `GRANT ALL ON ${database.name}.* TO limiter@'%'`,
  )
  const uri = `mysql://limiter:secret@127.0.0.1:${proxy.port}/${database.name}`
  const store = new MysqlStore({ uri })
  await store.install()
  await store.close()
  const traffics: Traffic[] = []
  const openTraffic = async (store: TrafficPlace = { uri }, timeoutMs = TIMEOUT_MS): Promise<Traffic> => {
    const opened = await Traffic.open({ store, timeoutMs })
    traffics.push(opened)
    return opened
  }
  const traffic = await openTraffic()
  return {
    server,
    proxy,
    database,
    traffic,
    uri,
    sql,
    openTraffic,
    connections: async () => (await threads()).length,
    admissions: () => readAdmissions(database),
    async leftovers() {
      const most = CONNECTIONS * traffics.filter(({ isAlive }) => isAlive).length
      const open = await threads()
      const transactions = await sql(
        `SELECT CONCAT_WS(', ', trx_state, 'since', trx_started, 'now', NOW(), 'rows locked', trx_rows_locked,
           'changed', trx_rows_modified, 'thread', ID, HOST, COMMAND, TIME, STATE, INFO) AS found
         FROM information_schema.INNODB_TRX JOIN information_schema.PROCESSLIST ON ID = trx_mysql_thread_id
         WHERE USER = 'limiter'`,
      )
      return [
        ...(open.length > most ? [`${open.length} connections`] : []),
        ...transactions.map(({ found }) => `an open transaction: ${found}`),
      ]
    },
    async killAll() {
      const found = await threads()
      // One may have ended meanwhile.
      for (const { id } of found) await sql(`KILL ${id}`).catch(() => {})
      return found.length
    },
    async close() {
      try {
        await Promise.all(traffics.map((each) => each.end()))
      } finally {
        await proxy.stop()
        await database.close()
        await server.stop()
      }
    },
  }
}
