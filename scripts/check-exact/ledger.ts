import { existsSync, rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise'
import type { Admission } from '../../__tests__/processes/check-history.js'
import { hostAddresses } from '../../lib/stores/mysql/hosts.js'
import { openSqlite } from '../../lib/stores/sqlite/open-sqlite.js'
import type { Place } from './options.js'

/** The server as it answers at a moment. */
export interface ServerState {
  readonly name: string
  /** Which of several servers it is; null for a file. */
  readonly identity: string | null
  /** Seconds since its start; null where it does not tell. */
  readonly uptime: number | null
}

/** What is written of one limiter, in a database: read and removed at the end of a check. */
export interface Ledger {
  state(): Promise<ServerState>
  /** All that is stored of the keys of a limiter, without its name in front. */
  admissions(limiter: string): Promise<Admission[]>
  /** Removes the rows of a limiter, and no others. */
  remove(limiter: string): Promise<void>
}

/** Keys in one statement that removes. */
const CHUNK = 100
const KEYS = 'SELECT rkey FROM rate_keys WHERE rkey > ? AND rkey < ?'
const EVENT_KEYS = 'SELECT DISTINCT rkey FROM rate_events WHERE rkey > ? AND rkey < ?'
const EVENTS = 'SELECT rkey, ts, hits FROM rate_events WHERE rkey > ? AND rkey < ?'

/** Every stored key of a limiter lies between these two. */
const range = (limiter: string): [Buffer, Buffer] => [Buffer.from(`${limiter}:`), Buffer.from(`${limiter};`)]

const admissionOf = (limiter: string, rkey: Uint8Array, ts: unknown, hits: unknown): Admission => ({
  key: Buffer.from(rkey)
    .toString()
    .slice(limiter.length + 1),
  ts: Number(ts),
  hits: Number(hits),
})

export const openLedger = (place: Place): Ledger =>
  'uri' in place ? mysqlLedger(place.uri) : sqliteLedger(place.filename)

/** How long a server that was there at the beginning may be away, in milliseconds: one that restarts, or fails over. */
const PATIENCE_MS = 30_000

function mysqlLedger(uri: string): Ledger {
  let answered = false
  const connect = async (): Promise<Connection> => {
    let failure: unknown
    for (const address of hostAddresses(uri) ?? [uri]) {
      try {
        return await createConnection({ uri: address, connectTimeout: 5000 })
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }
  /** A connection for each question: one that was open may have died with its server. */
  const ask = async <T>(question: (connection: Connection) => Promise<T>): Promise<T> => {
    const giveUpAt = performance.now() + (answered ? PATIENCE_MS : 0)
    for (;;) {
      try {
        const connection = await connect()
        const result = await question(connection).finally(() => connection.destroy())
        answered = true
        return result
      } catch (error) {
        // Not fatal is what the server said to the question.
        if (performance.now() >= giveUpAt || !(error as { fatal?: boolean }).fatal) throw error
        await delay(500)
      }
    }
  }
  return {
    state: () =>
      ask(async (connection) => {
        const [[server]] = await connection.query<RowDataPacket[]>(
          'SELECT VERSION() AS version, @@hostname AS host, @@port AS port',
        )
        const [[status]] = await connection.query<RowDataPacket[]>(`SHOW GLOBAL STATUS LIKE 'Uptime'`)
        const version = String(server?.version)
        return {
          name: /mariadb/i.test(version) ? `MariaDB ${version.split('-')[0]}` : `MySQL ${version}`,
          identity: `${server?.host}:${server?.port}`,
          uptime: status === undefined ? null : Number(status.Value),
        }
      }),
    admissions: (limiter) =>
      ask(async (connection) => {
        const [rows] = await connection.query<RowDataPacket[]>(EVENTS, range(limiter))
        return rows.map(({ rkey, ts, hits }) => admissionOf(limiter, rkey, ts, hits))
      }),
    remove: (limiter) =>
      ask(async (connection) => {
        for (const [table, select] of [
          ['rate_events', EVENT_KEYS],
          ['rate_keys', KEYS],
        ]) {
          const [rows] = await connection.query<RowDataPacket[]>(select as string, range(limiter))
          const keys = rows.map(({ rkey }) => rkey)
          // By key, not by range: that would lock the gap behind the last one, which is not ours.
          for (let i = 0; i < keys.length; i += CHUNK) {
            await connection.query(`DELETE FROM ${table} WHERE rkey IN (?)`, [keys.slice(i, i + CHUNK)])
          }
        }
      }),
  }
}

function sqliteLedger(filename: string): Ledger {
  const isNew = !existsSync(filename)
  return {
    state: async () => ({ name: 'SQLite', identity: null, uptime: null }),
    async admissions(limiter) {
      const database = await openSqlite(filename)
      const rows = database.prepare(EVENTS).all(...range(limiter)) as {
        rkey: Uint8Array
        ts: number
        hits: number
      }[]
      database.close()
      return rows.map(({ rkey, ts, hits }) => admissionOf(limiter, rkey, ts, hits))
    },
    async remove(limiter) {
      if (isNew) {
        for (const end of ['', '-wal', '-shm']) rmSync(filename + end, { force: true })
        return
      }
      const database = await openSqlite(filename)
      database.exec('PRAGMA busy_timeout = 5000')
      for (const table of ['rate_events', 'rate_keys']) {
        database.prepare(`DELETE FROM ${table} WHERE rkey > ? AND rkey < ?`).run(...range(limiter))
      }
      database.close()
    },
  }
}
