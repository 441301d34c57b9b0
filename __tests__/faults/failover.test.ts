import { createConnection } from 'mysql2/promise'
import { Limiter, MysqlStore } from '../../lib/index.js'
import { describeServers } from '../servers/describe-servers.js'
import type { PrivateServer } from '../servers/server.js'
import { startServer } from '../servers/start-server.js'

describeServers('two hosts', ({ kind }) => {
  const servers: PrivateServer[] = []
  const sql = async (server: PrivateServer, ...statements: string[]): Promise<unknown> => {
    const client = await createConnection(server.uri)
    try {
      let answer: unknown
      for (const statement of statements) [answer] = await client.query(statement)
      return answer
    } finally {
      await client.end()
    }
  }
  const uriOf = (hosts: readonly PrivateServer[]): string =>
    `mysql://limiter:secret@${hosts.map(({ port }) => `127.0.0.1:${port}`).join()}/limits`

  beforeAll(async () => {
    servers.push(...(await Promise.all([startServer(kind), startServer(kind)])))
    for (const server of servers) {
      const user = `limiter@'%'`
      await sql(server, 'CREATE DATABASE limits', `CREATE USER ${user} IDENTIFIED BY 'secret'`)
      await sql(server, `GRANT ALL ON limits.* TO ${user}`)
      const store = new MysqlStore({ uri: uriOf([server]) })
      await store.install()
      await store.close()
    }
  }, 120_000)
  afterAll(() => Promise.all(servers.map((server) => server.stop())))

  it('of which the first turns read-only, and then the second: decisions follow, none is lost (hazard 46)', async () => {
    const [first, second] = servers as [PrivateServer, PrivateServer]
    const store = new MysqlStore({ uri: uriOf(servers), sweepSeconds: false })
    const limiter = new Limiter({ store, limit: 1000, windowSeconds: 3600 })
    const outcomes: string[] = []
    const hit = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i += 1) outcomes.push((await limiter.hit(`key ${i % 7}`)).outcome)
    }
    const countedBy = async (server: PrivateServer): Promise<number> => {
      const rows = await sql(server, 'SELECT COALESCE(SUM(hits), 0) AS hits FROM limits.rate_events')
      return Number((rows as { hits: unknown }[])[0]?.hits)
    }

    await hit(20)
    await sql(first, 'SET GLOBAL read_only = ON')
    await hit(30)
    await sql(second, 'SET GLOBAL read_only = ON')
    await sql(first, 'SET GLOBAL read_only = OFF')
    await hit(40)
    await store.close()

    expect(new Set(outcomes)).toEqual(new Set(['allowed']))
    expect([await countedBy(first), await countedBy(second)]).toEqual([60, 30])
  })
})
