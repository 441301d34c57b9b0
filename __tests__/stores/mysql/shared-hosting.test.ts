import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise'
import { Limiter, MysqlStore, type MysqlStoreOptions } from '../../../lib/index.js'
import { describeServers } from '../../servers/describe-servers.js'
import { createDmlUser, type DmlUser } from '../../servers/dml-user.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { charge, policy } from '../policies.js'
import { storeContract } from '../store-contract.js'
import type { Subject } from '../subject.js'

jest.setTimeout(60_000)

describeServers(
  'a database user of a shared host, who may read and write rows and nothing else',
  ({ kind }) => {
    let database: TestDatabase
    let user: DmlUser
    beforeAll(async () => {
      database = await createTestDatabase(kind)
      // The provider's panel gives the user his rights, and phpMyAdmin creates the tables.
      const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
      await store.install()
      await store.close()
      user = await createDmlUser(database)
    })
    afterAll(async () => {
      await user.drop()
      await database.drop()
    })
    const mostConnections = (most: number) =>
      database.query(`ALTER USER ${user.name}@'%' WITH MAX_USER_CONNECTIONS ${most}`)

    it('has no right to CREATE, to events, to routines or to anything of the server', async () => {
      const pool = createPool({ uri: user.uri, connectionLimit: 1 })
      const [grants] = await pool.query<RowDataPacket[]>('SHOW GRANTS')
      await pool.end()
      const privileges = grants.map((grant) => /^GRANT (.*?) ON/.exec(String(Object.values(grant)[0]))?.[1])
      expect(privileges).toEqual(['USAGE', 'SELECT, INSERT, UPDATE, DELETE'])
    })

    describe('with one connection, which the application shares,', () => {
      storeContract(async (): Promise<Subject> => {
        await mostConnections(1)
        for (const table of ['rate_keys', 'rate_events']) await database.query(`DELETE FROM ${table}`)
        await database.query('UPDATE rate_limit_schema SET sweep_until = 0')
        const pool = createPool({ uri: user.uri, connectionLimit: 1 })
        const store = new MysqlStore({ pool, install: false, sweepSeconds: false })
        const count = async (table: string): Promise<number> =>
          (await database.query(`SELECT COUNT(*) AS n FROM ${table}`))[0]?.n
        return {
          store,
          setClock: async (to) => {
            await pool.query(`SET timestamp = ${(to / 1000).toFixed(6)}`)
          },
          size: async () => ({ keys: await count('rate_keys'), events: await count('rate_events') }),
          close: async () => {
            await store.close()
            await pool.end()
            await mostConnections(0)
          },
        }
      })
    })

    const pools: Pool[] = []
    const pool = (options: object): Pool => {
      const created = createPool({ uri: user.uri, connectionLimit: 1, ...options })
      pools.push(created)
      return created
    }
    const connection = (): object => {
      const { hostname, port, pathname } = new URL(user.uri)
      return {
        host: hostname,
        port: Number(port),
        user: user.name,
        password: user.password,
        database: pathname.slice(1),
      }
    }

    it.each<[string, () => MysqlStoreOptions]>([
      ['a pool of one', () => ({ pool: pool({}) })],
      ['a pool of one that takes several statements', () => ({ pool: pool({ multipleStatements: true }) })],
      ['one connection of its own', () => ({ connection: { ...connection(), connectionLimit: 1 } })],
      ['an address, one call at a time', () => ({ uri: user.uri })],
    ])('decides exactly over %s, of a user who may have no second', async (name, options) => {
      await mostConnections(1)
      const store = new MysqlStore({ ...options(), install: false, sweepSeconds: 1 })
      const shared = name === 'an address, one call at a time' ? null : store
      const limiter = new Limiter({
        ...{ store, name: `one${Date.now()}`, limit: 20, windowSeconds: 3600, timeoutMs: 30_000 },
      })
      const decisions = await Promise.all(
        Array.from({ length: 64 }, async (_, i) => {
          // The application's own queries, on the same connection, and what is no decision.
          if (shared !== null) await Promise.all([pools.at(-1)?.query('SELECT 1'), limiter.peek('a')])
          return limiter.hit(i % 2 === 0 ? 'a' : 'b')
        }),
      )
      const outcomes = decisions.map(({ outcome }) => outcome)
      expect(outcomes.filter((outcome) => outcome === 'allowed')).toHaveLength(40)
      expect(outcomes.filter((outcome) => outcome === 'denied')).toHaveLength(24)

      const never = new AbortController().signal
      const by = policy({ name: limiter.policy.name })
      await store.probe(never)
      await store.refund([{ ...charge('a', by), cost: 1, at: 1 }], never)
      await store.block(charge('a', by), 1e6, never)
      await store.reset([charge('a', by).key])
      expect((await store.sweep()).ran).toBe(true)
      expect((await limiter.peek('b')).used).toBe(20)
      await store.close()
      await Promise.all(pools.splice(0).map((each) => each.end()))
      await mostConnections(0)
    })

    it('decides over an address while a second connection is refused to him', async () => {
      await mostConnections(1)
      const store = new MysqlStore({ uri: user.uri, install: false, sweepSeconds: false })
      const limiter = new Limiter({
        ...{ store, name: `busy${Date.now()}`, limit: 50, windowSeconds: 3600, timeoutMs: 30_000 },
        logger: { error() {} },
      })
      await limiter.hit('a')
      const peek = () => Array.from({ length: 30 }, () => limiter.peek('a'))
      const peeks = peek()
      const hits = Array.from({ length: 60 }, () => limiter.hit('a'))
      peeks.push(...peek())
      const decisions = await Promise.all(hits)
      const outcomes = decisions.map(({ outcome }) => outcome)
      expect(outcomes.filter((outcome) => outcome === 'allowed')).toHaveLength(49)
      expect(outcomes.filter((outcome) => outcome === 'denied')).toHaveLength(11)
      expect((await Promise.all(peeks)).map(({ outcome }) => outcome)).not.toContain('degraded')
      await store.close()
      await mostConnections(0)
    })
  },
)
