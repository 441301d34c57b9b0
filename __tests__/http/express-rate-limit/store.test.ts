import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeServers } from '../../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { openMemory, openMysql, openSqliteFile } from '../../stores/subjects.js'
import { expressRateLimitStoreContract } from './store-contract.js'

describe('MemoryStore', () => expressRateLimitStoreContract(openMemory))

describe('SqliteStore', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rate-limit-'))
  let files = 0
  afterAll(() => rmSync(folder, { recursive: true }))

  expressRateLimitStoreContract(() => {
    files += 1
    return openSqliteFile(join(folder, `${files}.sqlite`))
  })
})

describeServers('MysqlStore', ({ kind }) => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(kind)
  })
  afterAll(() => database.drop())

  expressRateLimitStoreContract(() => openMysql(database))
})
