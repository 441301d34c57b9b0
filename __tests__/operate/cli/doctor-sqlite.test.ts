import { execFile } from 'node:child_process'
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileSystemKind } from '../../../lib/operate/cli/doctor/check-file.js'
import type { Finding } from '../../../lib/operate/cli/doctor/finding.js'
import { openSqlite } from '../../../lib/stores/sqlite/open-sqlite.js'
import { builtProgram, runCli, runJson } from './run-cli.js'

jest.setTimeout(120_000)

const parents = [tmpdir(), ...(process.platform === 'linux' ? ['/dev/shm'] : [])]

describe.each(parents)('the doctor on a SQLite file below %s', (parent) => {
  let folder: string
  let file: string
  const doctor = (...args: string[]) => runJson(['doctor', '--url', file, ...args])
  const findingOf = (json: { findings: Finding[] }, name: string): Finding =>
    json.findings.find(({ check }) => check === name) as Finding
  const run = async (sql: string): Promise<void> => {
    const database = await openSqlite(file)
    database.exec(sql)
    database.close()
  }
  beforeEach(async () => {
    folder = mkdtempSync(join(parent, 'doctor-'))
    file = join(folder, 'limits.sqlite')
    await runCli(['install', '--url', file])
    chmodSync(file, 0o660)
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('finds nothing wrong with one that was just made, but where it lies', async () => {
    const { code, json } = await doctor()
    expect({ code, isHealthy: json.isHealthy }).toEqual({ code: 0, isHealthy: true })
    expect(json.server).toMatch(/^SQLite 3\./)
    expect(json.findings.map(({ check }: Finding) => check)).toEqual([
      ...['version', 'permissions', 'privacy', 'file_system', 'disk', 'integrity', 'schema', 'usage'],
      ...['size', 'sweep', 'clock_steps', 'decision', 'journal'],
    ])
    const others = json.findings.filter(({ level }: Finding) => level !== 'ok')
    expect(others.map(({ check }: Finding) => check)).toEqual(parent === '/dev/shm' ? ['file_system'] : [])
  })

  it.each<[string, string, RegExp]>([
    ['an index', 'DROP INDEX ix_rate_keys_expires_at', /^Index ix_rate_keys_expires_at is missing/],
    ['a table', 'DROP TABLE rate_events', /^Table rate_events is missing/],
    ['a column', 'ALTER TABLE rate_keys DROP COLUMN span', /^Column rate_keys.span is missing/],
  ])('finds %s that is missing, and what to do helps', async (_, damage, found) => {
    await run(damage)
    const { code, json } = await doctor()
    const finding = findingOf(json, 'schema')
    expect({ code, ...finding }).toMatchObject({
      code: 1,
      level: 'problem',
      found: expect.stringMatching(found),
    })
    expect(finding.advice).not.toBeNull()
    for (const statement of finding.statements) await run(statement)
    expect(findingOf((await doctor()).json, 'schema').level).toBe('ok')
  })

  it('finds a column of another type, which nothing changes in place', async () => {
    await run(`DROP TABLE rate_events;
CREATE TABLE rate_events (rkey BLOB, ts TEXT, hits INTEGER, total INTEGER, PRIMARY KEY (rkey, ts)) WITHOUT ROWID`)
    expect(findingOf((await doctor()).json, 'schema')).toEqual({
      ...{ check: 'schema', level: 'problem', statements: [] },
      found: 'Column rate_events.ts is TEXT (2 of the primary key), not INTEGER (2 of the primary key).',
      advice: expect.stringMatching(/move the file away/),
    })
  })

  it('finds that everybody may read it', async () => {
    chmodSync(file, 0o644)
    expect(findingOf((await doctor()).json, 'privacy')).toMatchObject({
      ...{ level: 'note', statements: [`chmod o-rwx '${file}'`], advice: expect.any(String) },
    })
  })

  it('finds that it is damaged', async () => {
    await run(`INSERT INTO rate_keys (rkey, expires_at)
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT randomblob(60), i FROM n`)
    await run('PRAGMA wal_checkpoint(TRUNCATE)')
    const { size } = statSync(file)
    const handle = openSync(file, 'r+')
    writeSync(handle, Buffer.alloc(4096, 7), 0, 4096, Math.floor(size / 8192) * 4096)
    closeSync(handle)
    expect(findingOf((await doctor('--no-write')).json, 'integrity')).toMatchObject({
      ...{ level: 'problem', advice: expect.stringMatching(/counters begin anew/) },
    })
  })

  it('finds a WAL that nobody carries over, and keys in the future', async () => {
    await run(`INSERT INTO rate_keys (rkey, total, last_ts, expires_at)
VALUES (CAST('x:a' AS BLOB), 1, (unixepoch() + 900) * 1000000, (unixepoch() + 1800) * 1000000)`)
    const reader = await openSqlite(file)
    reader.exec('BEGIN')
    reader.prepare('SELECT COUNT(*) FROM rate_keys').get()
    await run(`CREATE TABLE ballast (b BLOB); INSERT INTO ballast VALUES (zeroblob(70000000))`)
    const { code, json } = await doctor()
    reader.close()
    expect(code).toBe(1)
    expect(findingOf(json, 'journal')).toMatchObject({
      ...{
        level: 'warning',
        found: expect.stringMatching(/has grown to/),
        advice: expect.stringMatching(/checkpoint/),
      },
    })
    expect(findingOf(json, 'clock_steps')).toMatchObject({ level: 'warning' })
  })

  it('finds that this user may not write it', async () => {
    await run('PRAGMA wal_checkpoint(TRUNCATE)')
    chmodSync(file, 0o444)
    chmodSync(folder, 0o555)
    // Root may everything: then as nobody.
    const uid = process.getuid?.() === 0 ? 65_534 : process.getuid?.()
    const { stdout } = await new Promise<{ stdout: string }>((resolve) => {
      const args = [builtProgram(), 'doctor', '--no-write', '--json', '--url', file]
      execFile(process.execPath, args, { ...(uid !== undefined && { uid }) }, (_, out) =>
        resolve({ stdout: out }),
      )
    })
    chmodSync(folder, 0o755)
    expect(findingOf(JSON.parse(stdout), 'permissions')).toMatchObject({
      ...{ level: 'problem', found: `This user may not write ${file}, ${folder}.` },
      advice: expect.stringMatching(/to the user that the application runs as/),
    })
  })
})

test.each([
  [0x6969, 'network', 'NFS'],
  [0xff534d42, 'network', 'CIFS'],
  [0x01021994, 'memory', 'tmpfs'],
  [0xef53, 'disk', null],
])('a file system of the type %d is one of kind %s', (type, kind, name) => {
  expect(fileSystemKind(type)).toEqual({ kind, name })
})
