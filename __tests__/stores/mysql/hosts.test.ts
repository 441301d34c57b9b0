import { createServer, type Socket } from 'node:net'
import { MysqlStore } from '../../../lib/index.js'
import { hostAddresses } from '../../../lib/stores/mysql/hosts.js'
import { describeServers } from '../../servers/describe-servers.js'
import { freePort } from '../../servers/free-port.js'
import { createTestDatabase, type TestDatabase } from '../../servers/test-database.js'
import { admitted, policy } from '../policies.js'

describe('an address with several hosts', () => {
  it.each([
    ['mysql://one/db', ['mysql://one/db']],
    [
      'mysql://user:p,w@one:3306,two:3307/db?ssl={}',
      ['mysql://user:p,w@one:3306/db?ssl={}', 'mysql://user:p,w@two:3307/db?ssl={}'],
    ],
    ['mysql://a@b@one,[::1]:3307/db', ['mysql://a@b@one/db', 'mysql://a@b@[::1]:3307/db']],
    ['mysql:///db?socketPath=/run/mysqld.sock', ['mysql:///db?socketPath=/run/mysqld.sock']],
    ['mysql://one,,two/db', null],
    ['mysql://one:x,two/db', null],
    ['mysql:one,two', null],
    ['postgres://one,two/db', null],
  ])('%s is read as %j', (uri, addresses) => {
    expect(hostAddresses(uri)).toEqual(addresses)
  })
})

/** Something that listens, and counts who comes. */
async function listen(port: number, greet: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  let visits = 0
  const server = createServer((socket) => {
    visits += 1
    sockets.add(socket)
    socket.on('error', () => {})
    greet(socket)
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    visits: () => visits,
    close: () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}

describeServers('a store with several hosts', (server) => {
  let database: TestDatabase
  const stores: MysqlStore[] = []
  beforeAll(async () => {
    database = await createTestDatabase(server.kind)
  })
  afterEach(() => Promise.all(stores.splice(0).map((store) => store.close())))
  afterAll(() => database.drop())

  /** The real server last, behind others. */
  const open = (...ports: number[]): MysqlStore => {
    const { host, port } = new URL(database.uri)
    const hosts = ports.map((other) => (other === Number(port) ? host : `127.0.0.1:${other}`))
    const store = new MysqlStore({
      uri: database.uri.replace(host, [...hosts, host].join()),
      sweepSeconds: false,
    })
    stores.push(store)
    return store
  }
  let keys = 0
  const works = async (store: MysqlStore): Promise<number> => {
    keys += 1
    const begin = performance.now()
    expect(await admitted(store, 2, `key ${keys}`, policy({ limit: 1 }))).toEqual([true, false])
    return performance.now() - begin
  }

  it('goes on to the next when the first refuses connections', async () => {
    await works(open(await freePort(), await freePort()))
  })

  it('goes on to the next within two seconds when the first accepts them and stays silent, and asks it no more', async () => {
    const port = await freePort()
    const silent = await listen(port, () => {})
    const store = open(port)
    await store.install()
    expect(silent.visits()).toBe(1)
    expect(await works(store)).toBeLessThan(2000)
    await Promise.all([store.probe(new AbortController().signal), works(store), store.reset(['p:a'])])
    expect(silent.visits()).toBe(1)
    await silent.close()
  })

  it('goes on to the next when the first has too many connections', async () => {
    const port = await freePort()
    const text = Buffer.from('\xff\x10\x04Too many connections', 'latin1') // error 1040
    const full = await listen(port, (socket) => {
      socket.end(Buffer.concat([Buffer.from([text.length, 0, 0, 0]), text]))
    })
    await works(open(port))
    await full.close()
  })

  it('keeps to the first while it is up', async () => {
    const port = await freePort()
    const second = await listen(port, () => {})
    const { host } = new URL(database.uri)
    const uri = database.uri.replace(host, `${host},127.0.0.1:${port}`)
    const store = new MysqlStore({ uri, sweepSeconds: false })
    stores.push(store)
    await works(store)
    expect(second.visits()).toBe(0)
    await second.close()
  })

  it('tells why when none of them answers', async () => {
    const ports = [await freePort(), await freePort()]
    const store = new MysqlStore({ uri: `mysql://root@127.0.0.1:${ports[0]},127.0.0.1:${ports[1]}/none` })
    stores.push(store)
    await expect(store.install()).rejects.toMatchObject({ code: 'ERR_STORE_CONNECTION' })
  })
})
