import {
  type Algorithm,
  Limiter,
  type LimiterOptions,
  MemoryStore,
  MysqlStore,
  SqliteStore,
  type Store,
} from 'express-sql-rate-limit'
import type { Contender, StoreKind } from './contender.js'

const makeStore: Record<Exclude<StoreKind, 'redis'>, (place: string) => Store> = {
  mysql: (uri) => new MysqlStore({ uri }),
  mariadb: (uri) => new MysqlStore({ uri }),
  sqlite: (filename) => new SqliteStore({ filename }),
  memory: () => new MemoryStore(),
}

/**
 * This package, with the defaults of its README but for these options. A `lease` is taken where the limit is large enough.
 */
export function ours(
  store: Exclude<StoreKind, 'redis'>,
  algorithm: Algorithm,
  { lease, timeoutMs }: Pick<LimiterOptions, 'lease' | 'timeoutMs'> = {},
): Contender {
  const window = algorithm === 'sliding-window' ? 'sliding window' : 'fixed window'
  return {
    name: `express-sql-rate-limit, ${window}${lease === undefined ? '' : `, lease of ${lease}`}`,
    store,
    algorithm: window,
    configuration: 'defaults: `limiter.hit(key)`; on MySQL and MariaDB one connection decides',
    async open(place, { limit, windowSeconds }) {
      const opened = makeStore[store](place)
      await opened.install()
      const limiter = new Limiter({
        store: opened,
        name: `limit-${limit}`,
        limit,
        windowSeconds,
        algorithm,
        timeoutMs,
        lease: lease === undefined ? undefined : Math.min(lease, Math.floor(limit / 10)),
      })
      return {
        async hit(key) {
          const decision = await limiter.hit(key)
          // An error, also when it would be let through: no decision was made.
          if (decision.outcome === 'degraded') throw decision.error
          return decision.allowed
        },
        close: () => opened.close(),
      }
    },
  }
}
