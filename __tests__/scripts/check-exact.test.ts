import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Limiter, MysqlStore, SqliteStore } from '../../lib/index.js'
import { parseOptions } from '../../scripts/check-exact/options.js'
import { checkSightings, type Sighting } from '../processes/check-sightings.js'
import { describeServers } from '../servers/describe-servers.js'
import { createDmlUser } from '../servers/dml-user.js'
import { startServer } from '../servers/start-server.js'
import { createTestDatabase, type TestDatabase } from '../servers/test-database.js'

interface Ended {
  readonly code: number | string | null | undefined
  readonly output: string
}

const check = (...args: string[]): Promise<Ended> =>
  new Promise((resolve) => {
    execFile('npx', ['tsx', 'scripts/check-exact/main.ts', ...args], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : error.code, output: stdout + stderr })
    })
  })
const short = ['--processes', '3', '--seconds', '2']

describeServers('the check that anyone can run', (server) => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase(server.kind)
  })
  afterAll(() => database.drop())

  it('finds the limiter exact, and leaves the rows of others as they were', async () => {
    const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
    const limiter = new Limiter({ store, limit: 5, windowSeconds: 3600, timeoutMs: 5000 })
    await limiter.hit('theirs')
    await store.close()
    const { code, output } = await check('--url', database.uri, ...short)
    expect(output).toMatch(/^EXACT: /m)
    expect(code).toBe(0)
    expect(output).toMatch(server.kind === 'mariadb' ? /^MariaDB 1/m : /^MySQL \d/m)
    const rows = await database.query(
      'SELECT CONVERT(rkey USING utf8mb4) AS rkey FROM rate_keys UNION ALL SELECT rkey FROM rate_events',
    )
    expect(rows.map(({ rkey }) => String(rkey))).toEqual(['default:theirs', 'default:theirs'])
  }, 60_000)

  it('finds what people write by hand not exact', async () => {
    const { code, output } = await check('--url', database.uri, '--by-hand', ...short)
    expect(output).toMatch(/^NOT EXACT: /m)
    // By hand it does both, and which of them is told first is chance.
    expect(output).toMatch(
      / (admitted of 5|refused with at the most \d of 5 in the window), by the callers' clock/,
    )
    expect(code).toBe(1)
  }, 60_000)

  it('leaves nothing behind when it is interrupted', async () => {
    const ours = `SELECT COUNT(*) AS n FROM rate_keys WHERE rkey LIKE 'check-exact-%'`
    const args = ['--import', 'tsx', 'scripts/check-exact/main.ts', '--url', database.uri]
    const child = spawn('node', [...args, '--processes', '2', '--seconds', '60'])
    const exited = once(child, 'exit')
    let said = ''
    child.stderr.on('data', (text) => {
      said += text
    })
    for (let rows = 0; rows < 10; ) {
      const found = await database.query(ours).catch(() => [])
      rows = found[0]?.n ?? 0
    }
    child.kill('SIGINT')
    expect(await exited).toEqual([2, null])
    expect(said).toBe('COULD NOT BE RUN: interrupted\n')
    expect(await database.query(ours)).toEqual([{ n: 0 }])
    expect(await database.query(ours.replace('rate_keys', 'rate_events'))).toEqual([{ n: 0 }])
  }, 60_000)

  it('says what is missing to a user who may not create tables', async () => {
    const empty = await createTestDatabase(server.kind)
    const user = await createDmlUser(empty)
    const { code, output } = await check('--url', user.uri, ...short)
    await user.drop()
    await empty.drop()
    expect(output).toMatch(/^COULD NOT BE RUN: ERR_STORE_SCHEMA: .*table rate_keys is missing/m)
    expect(output).not.toContain('hunter2')
    expect(code).toBe(2)
  }, 60_000)

  it('says that it could not be run with a wrong password, and does not show it', async () => {
    const uri = new URL(database.uri)
    uri.username = 'nobody'
    uri.password = 'hunter2'
    const { code, output } = await check('--url', uri.href, ...short)
    expect(output).toMatch(/^COULD NOT BE RUN: /m)
    expect(output).not.toContain('hunter2')
    expect(code).toBe(2)
  }, 60_000)
})

/** A way to a server on which it refuses several statements in a packet, as proxies do. Ends with the process that has it. */
async function refusingWay(uri: string): Promise<{ readonly uri: string; close(): void }> {
  const target = Number(new URL(uri).port)
  const sockets: Socket[] = []
  const way = createServer((client) => {
    const server = connect(target, '127.0.0.1')
    sockets.push(client, server)
    for (const socket of [client, server]) socket.on('error', () => {})
    server.pipe(client)
    client.once('data', (first) => {
      // Behind the header of the client's first packet stand its capabilities; this bit is CLIENT_MULTI_STATEMENTS.
      first[6] = (first[6] as number) & ~1
      server.write(first)
      client.pipe(server)
    })
  })
  way.listen(0, '127.0.0.1')
  await once(way, 'listening')
  const url = new URL(uri)
  url.port = String((way.address() as AddressInfo).port)
  const close = (): void => {
    way.close()
    for (const socket of sockets) socket.destroy()
  }
  return { uri: url.href, close }
}

describeServers('a proxy that refuses several statements in a packet', (server) => {
  it('is told as such, and checked statement by statement', async () => {
    const database = await createTestDatabase(server.kind)
    const way = await refusingWay(database.uri)
    try {
      const refused = await check('--url', way.uri, ...short)
      expect(refused).toMatchObject({ code: 2, output: expect.stringContaining('Try --single-statements') })
      const { code, output } = await check('--url', way.uri, '--single-statements', ...short)
      expect(output).toMatch(/^EXACT: /m)
      expect(code).toBe(0)
    } finally {
      way.close()
      await database.drop()
    }
  }, 120_000)
})

describeServers('a server that is restarted while it is checked', ({ kind }) => {
  it('is told from a limit that did not hold', async () => {
    const server = await startServer(kind)
    try {
      const database = await createTestDatabase(server)
      const ended = check('--url', database.uri, '--processes', '2', '--seconds', '6')
      // Hits are under way.
      for (let rows = 0; rows < 10; ) {
        const found = await database.query('SELECT COUNT(*) AS n FROM rate_events').catch(() => [])
        rows = found[0]?.n ?? 0
      }
      await database.close()
      await server.restart()
      const { code, output } = await ended
      expect(output).toMatch(/^EXACT: .* What the database could not decide broke nothing\.$/m)
      expect(output).toMatch(/^ {4}\d+ × ERR_STORE_CONNECTION: the connection was lost or refused$/m)
      expect(output).toMatch(/^ {2}Meanwhile the server was restarted \d+ seconds before the end\.$/m)
      expect(code).toBe(0)
    } finally {
      await server.stop()
    }
  }, 120_000)
})

describe('the check on a SQLite file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'check-exact-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  it('finds the limiter exact, and removes a file that it made', async () => {
    const filename = join(folder, 'new.sqlite')
    const { code, output } = await check('--url', `sqlite:${filename}`, ...short)
    expect(output).toMatch(/^EXACT: /m)
    expect(code).toBe(0)
    expect(existsSync(filename)).toBe(false)
  }, 60_000)

  it('keeps a file that was there, and what was in it', async () => {
    const filename = join(folder, 'theirs.sqlite')
    const open = () => {
      const store = new SqliteStore({ filename, sweepSeconds: false })
      return { store, limiter: new Limiter({ store, limit: 5, windowSeconds: 3600, timeoutMs: 5000 }) }
    }
    const first = open()
    await first.limiter.hit('theirs')
    await first.store.close()
    expect((await check('--url', filename, ...short)).code).toBe(0)
    const again = open()
    expect((await again.limiter.peek('theirs')).used).toBe(1)
    expect(await again.store.sweep()).toMatchObject({ keys: 0, events: 0 })
    await again.store.close()
  }, 60_000)
})

test('--help teaches, and a wrong option is told', async () => {
  const help = await check('--help')
  expect(help).toMatchObject({ code: 0, output: expect.stringContaining('Ends with 0: exact, 1: not exact') })
  const wrong = await check('--url', 'postgres://x')
  expect(wrong).toMatchObject({
    code: 2,
    output: expect.stringContaining('COULD NOT BE RUN: Expected --url'),
  })
}, 60_000)

test.each([
  [[]],
  [['--url', 'mysql://root:hunter2@127.0.0.1']],
  [['--url', ':memory:']],
  [['--url', 'a.sqlite', '--processes', '0']],
  [['--url', 'a.sqlite', '--seconds', '1e9']],
  [['--url', 'a.sqlite', '--what']],
])('%j is refused', (args) => {
  // Node's own TypeError for an unknown option is not the class that Jest knows.
  expect(() => parseOptions(args)).toThrow(expect.objectContaining({ name: 'TypeError' }))
  expect(() => parseOptions(args)).not.toThrow(/hunter2/)
})

describe('what callers saw', () => {
  const at = (millis: number, outcome: Sighting['outcome'], lasted = 1): Sighting => ({
    ...{ key: 'a', sent: millis * 1000, answered: (millis + lasted) * 1000, outcome },
  })
  const faults = (...sightings: Sighting[]) => checkSightings(sightings, 2, 1_000_000)

  test.each<[string, Sighting[]]>([
    ['the limit and a refusal', [at(0, 'admitted'), at(10, 'admitted'), at(20, 'refused')]],
    ['one more in the next window', [at(0, 'admitted'), at(10, 'admitted'), at(1001, 'admitted')]],
    ['hits that took longer than the window', [0, 1, 2, 3].map((ms) => at(ms, 'admitted', 1500))],
    ['an undecided hit that may have counted', [at(0, 'admitted'), at(5, 'undecided'), at(20, 'refused')]],
  ])('%s is no fault', (_, sightings) => {
    expect(faults(...sightings)).toEqual([])
  })

  test.each<[string, Sighting[], RegExp]>([
    ['one too many', [at(0, 'admitted'), at(10, 'admitted'), at(900, 'admitted')], /^a: 3 admitted of 2/],
    ['a refusal too early', [at(0, 'admitted'), at(20, 'refused')], /^a: refused with at the most 1 of 2/],
    [
      'a refusal too late',
      [at(0, 'admitted'), at(10, 'admitted'), at(1100, 'refused')],
      /^a: refused with at the most 0 of 2/,
    ],
  ])('%s is a fault', (_, sightings, fault) => {
    expect(faults(...sightings)).toEqual([expect.stringMatching(fault)])
  })
})
