import { describeServers } from '../servers/describe-servers.js'
import { createTestDatabase, type TestDatabase } from '../servers/test-database.js'
import { calendarContract } from './calendar-contract.js'
import { correctionsContract } from './corrections-contract.js'
import { leaseContract } from './lease-contract.js'
import { agreesWithModel } from './model-property.js'
import { storeContract } from './store-contract.js'
import { openMysql } from './subjects.js'
import { usageContract } from './usage-contract.js'

describeServers('MysqlStore', (server) => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(server.kind)
  })
  afterAll(() => database.drop())

  describe('with several statements in a packet', () => {
    storeContract(() => openMysql(database))
    correctionsContract(() => openMysql(database))
    leaseContract(() => openMysql(database), 20)
    calendarContract(() => openMysql(database), 40)
    usageContract((keepUsageSeconds) => openMysql(database, { keepUsageSeconds }), 15)
  })
  describe('statement by statement', () =>
    storeContract(() => openMysql(database, { multipleStatements: false })))

  it(
    'decides any schedule as the reference model does',
    () => agreesWithModel(() => openMysql(database), 60),
    120_000,
  )
})
