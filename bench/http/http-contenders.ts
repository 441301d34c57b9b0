import type { HttpContender } from './http-contender.js'

const OURS = '`rateLimit({ store, limit, windowSeconds, keyFn })`, headers `RateLimit` and `RateLimit-Policy`'
const THEIRS = "`standardHeaders: 'draft-8'`, `legacyHeaders: false`: `RateLimit` and `RateLimit-Policy`"
const FLEXIBLE = 'the middleware and the four headers of its documentation'

export const bare: HttpContender = { name: 'Express alone', store: 'memory', configuration: 'no limit' }

export const oursMysql: HttpContender = {
  name: 'express-sql-rate-limit, MySQL',
  store: 'mysql',
  configuration: OURS,
  load: async () => (await import('./ours.js')).mysql,
}

export const erlMemory: HttpContender = {
  name: 'express-rate-limit, memory',
  store: 'memory',
  configuration: THEIRS,
  load: async () => (await import('./express-rate-limit.js')).memory,
}

export const erlRedis: HttpContender = {
  name: 'express-rate-limit, Redis',
  store: 'redis',
  configuration: `rate-limit-redis, one client of \`redis\`, ${THEIRS}`,
  load: async () => (await import('./express-rate-limit.js')).redis,
}

export const rlfMysql: HttpContender = {
  name: 'rate-limiter-flexible, MySQL',
  store: 'mysql',
  configuration: `pool of 10, ${FLEXIBLE}`,
  load: async () => (await import('./rate-limiter-flexible.js')).mysql,
}

/** Every middleware that is compared. */
export const httpContenders: readonly HttpContender[] = [
  bare,
  oursMysql,
  {
    name: 'express-sql-rate-limit, MariaDB',
    store: 'mariadb',
    configuration: OURS,
    load: async () => (await import('./ours.js')).mysql,
  },
  {
    name: 'express-sql-rate-limit, SQLite',
    store: 'sqlite',
    configuration: OURS,
    load: async () => (await import('./ours.js')).sqlite,
  },
  {
    name: 'express-sql-rate-limit, memory',
    store: 'memory',
    configuration: OURS,
    load: async () => (await import('./ours.js')).memory,
  },
  erlMemory,
  erlRedis,
  rlfMysql,
  {
    name: 'rate-limiter-flexible, Redis',
    store: 'redis',
    configuration: `one client of \`redis\`, \`useRedisPackage\`, ${FLEXIBLE}`,
    load: async () => (await import('./rate-limiter-flexible.js')).redis,
  },
  {
    name: 'hitlimit, MySQL',
    store: 'mysql',
    configuration: 'pool of 10, its default headers: three `RateLimit-*` and three `X-RateLimit-*`',
    load: async () => (await import('./hitlimit.js')).mysql,
  },
]
