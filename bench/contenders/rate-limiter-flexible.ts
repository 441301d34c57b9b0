import Sqlite from 'better-sqlite3'
import { createPool } from 'mysql2'
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterMySQL,
  RateLimiterRedis,
  RateLimiterRes,
  RateLimiterSQLite,
} from 'rate-limiter-flexible'
import { createClient } from 'redis'
import type { Contender, Instance, Rule } from './contender.js'

/** With or without what its documentation calls the in-memory block strategy. */
export interface FlexibleOptions {
  readonly inMemoryBlock?: boolean
  /** Connections of the pool. Default 10, as mysql2 has it. */
  readonly connections?: number
}

const FIXED = 'fixed window' as const

/** Its MySQL limiter on a pool of mysql2, created with its `ready` callback, as its documentation shows. */
export function flexibleMysql(
  store: 'mysql' | 'mariadb',
  { inMemoryBlock = false, connections = 10 }: FlexibleOptions = {},
): Contender {
  return {
    name: `rate-limiter-flexible MySQL${connections === 10 ? '' : `, pool ${connections}`}${suffix(inMemoryBlock)}`,
    store,
    algorithm: FIXED,
    configuration: `\`consume(key)\`, pool of ${connections}${blockNote(inMemoryBlock)}`,
    async open(place, rule) {
      const pool = createPool({ uri: place, connectionLimit: connections })
      const limiter = await new Promise<RateLimiterMySQL>((resolve, reject) => {
        const made: RateLimiterMySQL = new RateLimiterMySQL(
          {
            ...pointsOf(rule, inMemoryBlock),
            storeClient: pool,
            dbName: new URL(place).pathname.slice(1),
            tableName: 'rate_limits',
          },
          (error?: Error) => (error ? reject(error) : resolve(made)),
        )
      })
      return instanceOf(limiter, () => pool.promise().end())
    },
  }
}

/** Its Redis limiter on one client of the package `redis`. */
export function flexibleRedis({ inMemoryBlock = false }: FlexibleOptions = {}): Contender {
  return {
    name: `rate-limiter-flexible Redis${suffix(inMemoryBlock)}`,
    store: 'redis',
    algorithm: FIXED,
    configuration: `\`consume(key)\`, one client of \`redis\`, \`useRedisPackage\`${blockNote(inMemoryBlock)}`,
    async open(place, rule) {
      const client = createClient({ url: place })
      await client.connect()
      const limiter = new RateLimiterRedis({
        ...pointsOf(rule, inMemoryBlock),
        storeClient: client,
        useRedisPackage: true,
      })
      return instanceOf(limiter, () => client.close())
    },
  }
}

/** Its SQLite limiter on better-sqlite3, with the pragmas that the others set themselves. */
export function flexibleSqlite(): Contender {
  return {
    name: 'rate-limiter-flexible SQLite',
    store: 'sqlite',
    algorithm: FIXED,
    configuration: '`consume(key)`, better-sqlite3, WAL, synchronous NORMAL',
    async open(place, rule) {
      const database = new Sqlite(place)
      database.pragma('journal_mode = WAL')
      database.pragma('synchronous = NORMAL')
      const limiter = await new Promise<RateLimiterSQLite>((resolve, reject) => {
        const made: RateLimiterSQLite = new RateLimiterSQLite(
          {
            ...pointsOf(rule, false),
            storeClient: database,
            storeType: 'better-sqlite3',
            tableName: 'flexible',
          },
          (error?: Error) => (error ? reject(error) : resolve(made)),
        )
      })
      return instanceOf(limiter, async () => void database.close())
    },
  }
}

/** Its memory limiter. */
export function flexibleMemory(): Contender {
  return {
    name: 'rate-limiter-flexible memory',
    store: 'memory',
    algorithm: FIXED,
    configuration: '`consume(key)`',
    open: async (_place, rule) => instanceOf(new RateLimiterMemory(pointsOf(rule, false)), async () => {}),
  }
}

const suffix = (inMemoryBlock: boolean): string => (inMemoryBlock ? ', in-memory block' : '')

const blockNote = (inMemoryBlock: boolean): string =>
  inMemoryBlock ? ', `inMemoryBlockOnConsumed` at the limit' : ''

function pointsOf({ limit, windowSeconds }: Rule, inMemoryBlock: boolean) {
  return {
    points: limit,
    duration: windowSeconds,
    keyPrefix: `limit-${limit}`,
    ...(inMemoryBlock ? { inMemoryBlockOnConsumed: limit } : {}),
  }
}

function instanceOf(limiter: RateLimiterAbstract, close: () => Promise<unknown>): Instance {
  return {
    async hit(key) {
      try {
        await limiter.consume(key)
        return true
      } catch (denial) {
        if (denial instanceof RateLimiterRes) return false
        throw denial
      }
    },
    async close() {
      await close()
    },
  }
}
