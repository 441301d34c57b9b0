import { type Connection, createConnection, type RowDataPacket } from 'mysql2/promise'
import type { Contender } from '../contenders/contender.js'
import { openPlace } from '../contenders/open-place.js'
import type { TcpProxy } from '../proxy/start-proxy.js'
import type { Servers } from '../section.js'
import { drive } from './drive.js'
import { keysInTurn, randomKeys } from './random-keys.js'

/** What a decision costs on the way and on the server, on average. */
export type WorkPerHit = Readonly<Record<string, number>>

const COUNTERS = [
  'Questions',
  'Com_begin',
  'Com_commit',
  'Com_rollback',
  'Com_select',
  'Com_insert',
  'Com_update',
  'Com_delete',
  'Binlog_cache_use',
  'Innodb_os_log_fsyncs',
  'Innodb_os_log_written',
  'Innodb_rows_inserted',
  'Innodb_rows_updated',
  'Innodb_rows_deleted',
  'Bytes_received',
  'Bytes_sent',
]

/** Callers, and the hits they make together. */
export interface CountedLoad {
  readonly callers: number
  readonly keys: number
  /** Hits before, after which connections, prepared statements and rows are there; 0 for keys nobody has used. */
  readonly warmUp: number
  /** How the keys begin. */
  readonly prefix: string
  readonly hits: number
}

/**
 * Counts what admitted hits make the client and the MySQL server do.
 *
 * @param proxy - leads to the server, for the contender alone
 * @returns the counts for each load
 */
export async function countWork(
  contender: Contender,
  servers: Servers,
  proxy: TcpProxy,
  loads: readonly CountedLoad[],
): Promise<WorkPerHit[]> {
  const place = await openPlace(contender.store, servers)
  const observer = await createConnection(servers.mysql.uri)
  const instance = await contender.open(proxy.reach(place.at), { limit: 1_000_000, windowSeconds: 60 })
  try {
    const counts: WorkPerHit[] = []
    for (const { callers, keys, prefix, warmUp, hits } of loads) {
      const nextKey = warmUp === 0 ? keysInTurn(keys, prefix) : randomKeys(keys, prefix)
      if (warmUp > 0) {
        await drive(instance.hit, { callers, nextKey: keysInTurn(keys, prefix), hits: keys })
        await drive(instance.hit, { callers, nextKey, hits: warmUp })
      }
      const first = await readCounters(observer, proxy)
      const before = await readCounters(observer, proxy)
      await drive(instance.hit, { callers, nextKey, hits })
      const after = await readCounters(observer, proxy)
      const perHit = Object.keys(after).map((name) => {
        // Reading the counters moves them as well: by as much as between the first two readings.
        const reading = value(before, name) - value(first, name)
        return [name, (value(after, name) - value(before, name) - reading) / hits] as const
      })
      counts.push(Object.fromEntries(perHit))
    }
    return counts
  } finally {
    await instance.close()
    await observer.end()
    await place.remove()
  }
}

const value = (counters: WorkPerHit, name: string): number => counters[name] ?? 0

async function readCounters(observer: Connection, proxy: TcpProxy): Promise<WorkPerHit> {
  const [rows] = await observer.query<RowDataPacket[]>('SHOW GLOBAL STATUS WHERE Variable_name IN (?)', [
    COUNTERS,
  ])
  return {
    ...(await proxy.counts()),
    ...Object.fromEntries(rows.map((row) => [row.Variable_name, Number(row.Value)])),
  }
}
