import { mysqlStore } from '@joint-ops/hitlimit/stores/mysql'
import { sqliteStore } from '@joint-ops/hitlimit/stores/sqlite'
import { createPool } from 'mysql2/promise'
import type { Contender, Instance, Rule } from './contender.js'

type HitlimitStore = ReturnType<typeof mysqlStore>

/** hitlimit's MySQL store by itself, on a pool of mysql2 with its defaults, as its documentation shows. */
export function hitlimitMysql(store: 'mysql' | 'mariadb'): Contender {
  return {
    name: 'hitlimit MySQL',
    store,
    algorithm: 'fixed window',
    configuration: '`store.hit(key, windowMs, limit)`, pool of 10',
    async open(place, rule) {
      const pool = createPool(place)
      return instanceOf(mysqlStore({ pool, tablePrefix: `limit_${rule.limit}` }), rule, () => pool.end())
    },
  }
}

/** hitlimit's SQLite store by itself. It sets WAL; better-sqlite3 then has synchronous NORMAL by default. */
export function hitlimitSqlite(): Contender {
  return {
    name: 'hitlimit SQLite',
    store: 'sqlite',
    algorithm: 'fixed window',
    configuration: '`store.hit(key, windowMs, limit)`, WAL, synchronous NORMAL',
    open: async (place, rule) => instanceOf(sqliteStore({ path: place }), rule, async () => {}),
  }
}

async function instanceOf(
  store: HitlimitStore,
  { limit, windowSeconds }: Rule,
  close: () => Promise<void>,
): Promise<Instance> {
  // Its tables are created by the constructor, and only a hit waits for them.
  await store.hit('first', windowSeconds * 1000, limit)
  return {
    hit: async (key) => (await store.hit(key, windowSeconds * 1000, limit)).count <= limit,
    async close() {
      await store.shutdown?.()
      await close()
    },
  }
}
