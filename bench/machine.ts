import { availableParallelism, cpus, totalmem } from 'node:os'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import type { Servers } from './section.js'

/** What the figures of a run depend on. */
export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memoryGigabytes: number
  readonly platform: string
  readonly node: string
  readonly servers: { readonly mysql: string; readonly mariadb: string; readonly redis: string }
  /** Server variables on which the price of a commit depends, as the servers say them. */
  readonly durability: { readonly mysql: Durability; readonly mariadb: Durability }
}

type Durability = Readonly<Record<string, string>>

const DURABILITY_VARIABLES = [
  'log_bin',
  'sync_binlog',
  'innodb_flush_log_at_trx_commit',
  'innodb_doublewrite',
  'innodb_flush_method',
]

/** Asks the machine and the servers what they are. */
export async function describeMachine({ mysql, mariadb, redis }: Servers): Promise<Machine> {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGigabytes: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    servers: { mysql: mysql.version, mariadb: mariadb.version, redis: redis.version },
    durability: { mysql: await durabilityOf(mysql.uri), mariadb: await durabilityOf(mariadb.uri) },
  }
}

async function durabilityOf(uri: string): Promise<Durability> {
  const connection = await createConnection(uri)
  try {
    const [rows] = await connection.query<RowDataPacket[]>(
      'SHOW GLOBAL VARIABLES WHERE Variable_name IN (?)',
      [DURABILITY_VARIABLES],
    )
    return Object.fromEntries(rows.map((row) => [row.Variable_name, row.Value]))
  } finally {
    connection.destroy()
  }
}
