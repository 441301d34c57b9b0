import { setTimeout as delay } from 'node:timers/promises'
import { type Connection, createConnection } from 'mysql2/promise'
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
    let going = true
    let storm: Promise<unknown> = Promise.resolve()
    const lock = (keys: readonly string[]) =>
      holder.query(`SELECT total FROM rate_keys WHERE rkey IN (${keys}) ORDER BY rkey DESC FOR UPDATE`)
    const backwards = async (): Promise<void> => {
      const rows = await scene.sql(
        `SELECT HEX(rkey) AS rkey FROM ${scene.database.name}.rate_keys WHERE rkey NOT LIKE '% new %' ORDER BY expires_at DESC LIMIT 20`,
      )
      const keys = rows.map(({ rkey }) => `x'${rkey}'`).sort()
      while (going) {
        try {
          await holder.query('START TRANSACTION')
          // The server ends the transaction that has written less: ours.
          await holder.query(`INSERT INTO ballast VALUES ${BALLAST}`)
          await lock(keys.slice(10))
          // For a batch that has locked what comes before these, and now waits.
          await delay(100)
          await lock(keys.slice(0, 10))
        } catch {
          // It was the victim.
        }
        await holder.query('ROLLBACK')
        // For keys that were taken for locked, which are tried one by one, to come together again.
        await delay(700)
      }
    }
    const before = scene.proxy.heard('#40001')
    await survive(scene, {
      async begin() {
        await holder.query('CREATE TABLE ballast (n INT PRIMARY KEY)')
        storm = backwards()
      },
      async end() {
        // Two that meet so are a matter of chance, and of how large the batches are.
        for (let i = 0; i < 150 && scene.proxy.heard('#40001') === before; i += 1) await delay(100)
        going = false
        await storm
      },
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
