import { setTimeout as delay } from 'node:timers/promises'
import { type Connection, createConnection } from 'mysql2/promise'
import { Limiter, MysqlStore } from '../../lib/index.js'
import { describeServers } from '../servers/describe-servers.js'
import { openScene, type ServerScene } from './open-scene.js'
import { PATIENT_MS, survive } from './survive.js'
import type { Traffic } from './traffic.js'

/** What decisions send, by how each statement begins. */
const STATEMENTS = [
  'INSERT INTO rate_keys',
  'SELECT rkey',
  'SELECT TIMESTAMPDIFF',
  'INSERT INTO rate_events',
  'REPLACE',
  'COMMIT',
  'ROLLBACK',
]
const BALLAST = Array.from({ length: 100 }, (_, n) => `(${n})`).join()

describeServers('other transactions', ({ kind }) => {
  let scene: ServerScene
  let holder: Connection
  beforeAll(async () => {
    scene = await openScene(kind)
    holder = await createConnection(scene.database.uri)
  }, 120_000)
  afterAll(async () => {
    await holder?.end()
    await scene?.close()
  }, 60_000)

  it('that hold every row for longer than the server lets one wait (hazard 8)', async () => {
    const { codes } = await survive(scene, {
      async begin() {
        await holder.query('START TRANSACTION')
        await holder.query('SELECT * FROM rate_keys FOR UPDATE')
      },
      end: () => holder.query('ROLLBACK'),
      lastsMs: 1500,
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_TIMEOUT')
  })

  it('that an ALTER waits for, and everybody behind it (hazard 21)', async () => {
    let altered: Promise<unknown> = Promise.resolve()
    const { codes } = await survive(scene, {
      async begin() {
        await holder.query('START TRANSACTION')
        await holder.query('SELECT COUNT(*) FROM rate_keys')
        altered = scene.sql(`ALTER TABLE ${scene.database.name}.rate_keys COMMENT = 'altered'`)
      },
      async end() {
        await holder.query('ROLLBACK')
        await altered
      },
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_TIMEOUT')
  })

  it('that take the same locks in another order: deadlocks are retried (hazard 9)', async () => {
    const store = new MysqlStore({ uri: scene.uri, sweepSeconds: false })
    const limiter = new Limiter({ store, limit: 100, windowSeconds: 60, timeoutMs: PATIENT_MS })
    const keys = Array.from({ length: 20 }, (_, i) => `key ${10 + i}`)
    const [first, last] = [keys[0], keys[19]] as [string, string]
    const hitAll = async (): Promise<string[]> => {
      const decisions = await Promise.all(keys.map((key) => limiter.hit(key)))
      return decisions.map(({ outcome }) => outcome)
    }
    const lock = (key: string): Promise<unknown> =>
      holder.query('SELECT total FROM rate_keys WHERE rkey = ? FOR UPDATE', [limiter.storedKeys(key)[0]?.key])
    const before = scene.proxy.heard('#40001')
    await survive(scene, {
      async begin() {
        await hitAll()
        await holder.query('CREATE TABLE ballast (n INT PRIMARY KEY)')
        await holder.query('START TRANSACTION')
        // The server ends the transaction that has written less: ours.
        await holder.query(`INSERT INTO ballast VALUES ${BALLAST}`)
        await lock(last)
        const hits = hitAll()
        // By then they have locked all but the last, and wait for it.
        await delay(300)
        await lock(first)
        await holder.query('ROLLBACK')
        expect(new Set(await hits)).toEqual(new Set(['allowed']))
        await store.close()
      },
      lastsMs: 0,
    })
    expect(scene.proxy.heard('#40001')).toBeGreaterThan(before)
  })

  describe.each([
    ['several statements in a packet', true],
    ['each statement on its own', false],
  ])('that a decision with %s', (_, multipleStatements) => {
    let traffic: Traffic
    beforeAll(async () => {
      traffic = await scene.openTraffic({ uri: scene.uri, multipleStatements }, PATIENT_MS)
    })

    it.each([
      ['falls victim to', 1213],
      ['waits too long for', 1205],
    ])('%s, at each of its statements: it is decided all the same', async (_is, errno) => {
      const { codes } = await survive(
        { ...scene, traffic },
        {
          async begin() {
            for (const beginning of STATEMENTS) await scene.proxy.refuse(beginning, errno, 2)
          },
          lastsMs: 0,
        },
      )
      expect(codes).toEqual({})
    })
  })
})
