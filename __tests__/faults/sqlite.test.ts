import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqlite } from '../../lib/stores/sqlite/open-sqlite.js'
import type { Admission } from '../processes/check-history.js'
import { createGuard, type Guard } from '../servers/create-guard.js'
import { runCommand } from '../servers/run-command.js'
import { type Scene, survive, TIMEOUT_MS } from './survive.js'
import { Traffic } from './traffic.js'

/** Only root may mount. */
const AS_ROOT = process.getuid?.() === 0 ? [] : ['sudo', '-n']

describe('a SQLite file', () => {
  let folder: string
  let filename: string
  let scene: Scene
  let guard: Guard
  /** A disk of eight megabytes. */
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rate-limit-disk-'))
    filename = join(folder, 'limits.sqlite')
    await runCommand([...AS_ROOT, 'mount', '-t', 'tmpfs', '-o', 'size=8m', 'none', folder])
    guard = createGuard(['sh', '-c', `${AS_ROOT.join(' ')} umount -- "$0" && rmdir -- "$0"`, folder])
  })
  afterEach(async () => {
    await scene.traffic.end()
    await guard.release()
  })
  const open = async (): Promise<void> => {
    scene = {
      traffic: await Traffic.open({ store: { filename }, timeoutMs: TIMEOUT_MS }),
      async admissions() {
        const database = await openSqlite(filename)
        const rows = database.prepare('SELECT CAST(rkey AS TEXT) AS key, ts, hits FROM rate_events').all()
        database.close()
        return rows as Admission[]
      },
      leftovers: async () => [],
    }
  }

  it('on a disk that is full for a while', async () => {
    await open()
    const filler = join(folder, 'filler')
    const { codes } = await survive(scene, {
      begin: () => writeFile(filler, Buffer.alloc(9_000_000)).catch(() => {}),
      end: () => rm(filler),
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_CAPACITY')
  })

  it('on a disk that takes no writes for a while', async () => {
    const database = await openSqlite(filename)
    database.exec('CREATE TABLE something (id INTEGER)')
    database.close()
    await runCommand([...AS_ROOT, 'mount', '-o', 'remount,ro', folder])
    await open()
    const { codes } = await survive(scene, {
      begin() {},
      end: () => runCommand([...AS_ROOT, 'mount', '-o', 'remount,rw', folder]),
    })
    expect(Object.keys(codes)).toContain('ERR_STORE_READ_ONLY')
    expect(existsSync(filename)).toBe(true)
  })

  it('that another process keeps locked for a while (hazards 97, 101)', async () => {
    await open()
    const other = await openSqlite(filename)
    const { codes } = await survive(scene, {
      begin: () => other.exec('BEGIN IMMEDIATE'),
      end: () => other.exec('ROLLBACK'),
    })
    other.close()
    expect(Object.keys(codes)).toContain('ERR_STORE_TIMEOUT')
  })
})
