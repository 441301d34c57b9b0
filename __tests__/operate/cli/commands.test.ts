import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MysqlStore, SqliteStore } from '../../../lib/index.js'
import { openSqlite } from '../../../lib/stores/sqlite/open-sqlite.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase } from '../../servers/test-database.js'
import { commandsContract, type Place } from './commands-contract.js'

const EXPIRE = 'UPDATE rate_keys SET expires_at = 1'

describeServers('the commands', ({ kind }) => {
  commandsContract(async (): Promise<Place> => {
    const database = await createTestDatabase(kind)
    return {
      // As other tools write the address of a MariaDB.
      url: database.uri.replace(/^mysql:/, `${kind}:`),
      withoutTables: 'ERR_STORE_SCHEMA',
      open: (options = {}) => new MysqlStore({ uri: database.uri, sweepSeconds: false, ...options }),
      expire: async () => {
        await database.query(EXPIRE)
      },
      drop: () => database.drop(),
    }
  })
})

describe('the commands on SQLite', () => {
  commandsContract(async (): Promise<Place> => {
    const folder = mkdtempSync(join(tmpdir(), 'cli-'))
    const filename = join(folder, 'limits.sqlite')
    return {
      url: `sqlite:${filename}`,
      withoutTables: 'ERR_STORE_CONNECTION',
      open: (options = {}) => new SqliteStore({ filename, sweepSeconds: false, ...options }),
      expire: async () => {
        const database = await openSqlite(filename)
        database.exec(EXPIRE)
        database.close()
      },
      drop: async () => rmSync(folder, { recursive: true }),
    }
  })
})
