import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import { createClient } from 'redis'
import { createGuard } from '../../__tests__/servers/create-guard.js'
import type { Servers } from '../section.js'
import type { StoreKind } from './contender.js'

/** An empty place to count in. */
export interface Place {
  /** What a contender opens: a URI with its database, a file, or nothing. */
  readonly at: string
  remove(): Promise<void>
}

const REDIS_DATABASES = 16
let count = 0

/** A database, a Redis database or a file that nobody has used. */
export async function openPlace(store: StoreKind, servers: Servers): Promise<Place> {
  count += 1
  switch (store) {
    case 'mysql':
    case 'mariadb':
      return openDatabase(servers[store].uri, `bench_${count}`)
    case 'redis':
      return openRedisDatabase(`${servers.redis.uri}/${count % REDIS_DATABASES}`)
    case 'sqlite': {
      const folder = await mkdtemp(join(tmpdir(), 'bench-'))
      const guard = createGuard(['rm', '-rf', '--', folder]) // also when the run is broken off
      return { at: join(folder, 'limits.sqlite'), remove: () => guard.release() }
    }
    case 'memory':
      return { at: '', remove: async () => {} }
  }
}

async function openDatabase(server: string, name: string): Promise<Place> {
  const run = async (sql: string): Promise<void> => {
    const connection = await createConnection(server)
    await connection.query(sql).finally(() => connection.end())
  }
  await run(`CREATE DATABASE ${name}`)
  return { at: new URL(name, server).href, remove: () => run(`DROP DATABASE ${name}`) }
}

async function openRedisDatabase(url: string): Promise<Place> {
  const empty = async (): Promise<void> => {
    const client = createClient({ url })
    await client.connect()
    await client.flushDb()
    await client.close()
  }
  await empty()
  return { at: url, remove: empty }
}
