import { expressRateLimitMemory, expressRateLimitRedis } from './express-rate-limit.js'
import { hitlimitMysql, hitlimitSqlite } from './hitlimit.js'
import { ours } from './ours.js'
import { flexibleMemory, flexibleMysql, flexibleRedis, flexibleSqlite } from './rate-limiter-flexible.js'
import { threeStatements } from './three-statements.js'

// One object each: what is known of a contender in a run is remembered by it.

export const slidingMysql = ours('mysql', 'sliding-window')
export const fixedMysql = ours('mysql', 'fixed-window')
export const lease100Mysql = ours('mysql', 'sliding-window', { lease: 100 })
export const lease1000Mysql = ours('mysql', 'sliding-window', { lease: 1000 })
export const slidingMariadb = ours('mariadb', 'sliding-window')
export const fixedMariadb = ours('mariadb', 'fixed-window')
export const slidingSqlite = ours('sqlite', 'sliding-window')
export const fixedSqlite = ours('sqlite', 'fixed-window')
export const slidingMemory = ours('memory', 'sliding-window')
export const fixedMemory = ours('memory', 'fixed-window')

export const rlfMysql = flexibleMysql('mysql')
/** Its documentation's example has a pool of 100. */
export const rlfMysqlPool100 = flexibleMysql('mysql', { connections: 100 })
export const rlfMysqlBlock = flexibleMysql('mysql', { inMemoryBlock: true })
export const rlfMariadb = flexibleMysql('mariadb')
export const rlfRedis = flexibleRedis()
export const rlfRedisBlock = flexibleRedis({ inMemoryBlock: true })
export const rlfSqlite = flexibleSqlite()
export const rlfMemory = flexibleMemory()

export const erlRedis = expressRateLimitRedis()
export const erlMemory = expressRateLimitMemory()

export const hitlimitOnMysql = hitlimitMysql('mysql')
export const hitlimitOnMariadb = hitlimitMysql('mariadb')
export const hitlimitOnSqlite = hitlimitSqlite()

export const handMysql = threeStatements('mysql')
export const handMariadb = threeStatements('mariadb')
