import { setTimeout as delay } from 'node:timers/promises'
import { MysqlStore } from '../../lib/index.js'
import { describeServers } from '../servers/describe-servers.js'
import { openScene, type ServerScene } from './open-scene.js'
import { PATIENT_MS, RUN, survive } from './survive.js'

describeServers('a server', ({ kind }) => {
  let scene: ServerScene
  beforeAll(async () => {
    scene = await openScene(kind)
  }, 120_000)
  afterAll(() => scene?.close(), 60_000)

  it('that stands still and goes on (hazard 141)', async () => {
    const { server } = scene
    const { codes } = await survive(scene, {
      begin: () => server.signal('SIGSTOP'),
      end: () => server.signal('SIGCONT'),
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_TIMEOUT')
  })

  it('that stands still in the middle of a COMMIT', async () => {
    const { server, proxy } = scene
    const { codes } = await survive(scene, {
      begin: () => proxy.uponCommit(() => void server.signal('SIGSTOP')),
      end: () => server.signal('SIGCONT'),
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_TIMEOUT')
  })

  it('that is killed and started again while units are held ahead', async () => {
    const { server } = scene
    await survive(scene, {
      lease: 2,
      async begin() {
        await server.signal('SIGKILL')
        await server.exited()
      },
      end: () => server.restart(),
    })
  })

  it('that is killed and started again (hazard 79)', async () => {
    const { server } = scene
    const { codes } = await survive(scene, {
      async begin() {
        await server.signal('SIGKILL')
        await server.exited()
      },
      end: () => server.restart(),
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_CONNECTION')
  })

  it('that kills every connection, again and again (hazard 55)', async () => {
    const killed: number[] = []
    await survive(scene, {
      async begin() {
        for (let i = 0; i < 10; i += 1) {
          killed.push(await scene.killAll())
          await delay(30)
        }
      },
      lastsMs: 0,
    })
    expect(killed.filter((connections) => connections > 0).length).toBeGreaterThan(5)
  })

  it('that closes connections which are idle for a second (hazards 76, 77)', async () => {
    await scene.sql('SET GLOBAL wait_timeout = 1')
    const places = [{ uri: scene.uri }, { pool: scene.uri }]
    const traffics = await Promise.all(places.map((place) => scene.openTraffic(place, PATIENT_MS)))
    const run = async (): Promise<void> => {
      await Promise.all(traffics.map((traffic, i) => traffic.start({ ...RUN, prefix: `idle ${i}` })))
      await delay(300)
      const reports = await Promise.all(traffics.map((traffic) => traffic.stop()))
      for (const { codes, late } of reports) expect({ codes, late }).toEqual({ codes: {}, late: [] })
    }
    try {
      await scene.killAll()
      await run()
      expect(await scene.connections()).toBeGreaterThan(0)
      await delay(2500)
      expect(await scene.connections()).toBe(0)
      await run()
    } finally {
      await scene.sql('SET GLOBAL wait_timeout = DEFAULT')
    }
  })

  it('that takes no writes for a while, as after a failover (hazard 46)', async () => {
    const { codes } = await survive(scene, {
      begin: () => scene.sql('SET GLOBAL read_only = ON'),
      end: () => scene.sql('SET GLOBAL read_only = OFF'),
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_READ_ONLY')
  })

  it.each([
    ['INSERT INTO rate_keys', 1290],
    ['INSERT INTO rate_events', 1836],
    ['REPLACE', 1836],
    ['COMMIT', 1290],
  ])('that refuses one %s with error %i, and takes the next (hazard 46)', async (beginning, errno) => {
    const traffic = await scene.openTraffic({ uri: scene.uri }, PATIENT_MS)
    const { codes } = await survive(
      { ...scene, traffic },
      { begin: () => scene.proxy.refuse(beginning, errno, 1), lastsMs: 0 },
    )
    expect(codes).toEqual({})
  })

  it('that refuses writes with error 1836 again and again (hazard 46)', async () => {
    const { codes } = await survive(scene, {
      begin: () => scene.proxy.refuse('INSERT INTO rate_events', 1836, 6),
      lastsMs: 0,
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_READ_ONLY')
  })

  it('that is started in read-only mode for a while', async () => {
    const { server } = scene
    const shutDown = async (): Promise<void> => {
      await server.signal('SIGTERM') // in order, as read-only mode recovers nothing
      await server.exited()
    }
    await survive(scene, {
      async begin() {
        await shutDown()
        await server.restart(['--innodb-read-only=ON'])
        const store = new MysqlStore({ uri: scene.uri, sweepSeconds: false })
        const probe = store.probe(new AbortController().signal)
        await expect(probe).rejects.toMatchObject({ code: 'ERR_STORE_READ_ONLY' })
        await store.close()
      },
      async end() {
        await shutDown()
        await server.restart([])
      },
    })
  })

  it('that lets the user have two connections, for four processes', async () => {
    const others = await Promise.all([1, 2, 3].map(() => scene.openTraffic()))
    const { codes } = await survive(scene, {
      others,
      async begin() {
        await scene.sql(`ALTER USER limiter@'%' WITH MAX_USER_CONNECTIONS 2`)
        await scene.killAll()
      },
      end: () => scene.sql(`ALTER USER limiter@'%' WITH MAX_USER_CONNECTIONS 0`),
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_CAPACITY')
  })

  it('that does not take the password any more', async () => {
    const { codes } = await survive(scene, {
      async begin() {
        await scene.sql(`ALTER USER limiter@'%' IDENTIFIED BY 'another'`)
        await scene.killAll()
      },
      end: () => scene.sql(`ALTER USER limiter@'%' IDENTIFIED BY 'secret'`),
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_CONFIG')
  })

  it('whose tables are dropped: they are made again', async () => {
    const { codes } = await survive(scene, {
      begin: () => scene.sql(`USE ${scene.database.name}`, 'DROP TABLE rate_keys, rate_events'),
      keepsRows: false,
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_SCHEMA')
  })

  it('behind a pool that was ended', async () => {
    const traffic = await scene.openTraffic({ endedPool: scene.uri })
    const { codes, decisions } = await survive(
      { ...scene, traffic },
      { begin() {}, lastsMs: 0, recovers: false },
    )
    expect(codes).toEqual({ ERR_STORE_CLOSED: decisions })
  })
})
