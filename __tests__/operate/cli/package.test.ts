import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

jest.setTimeout(300_000)

/** Runs a program in a folder, with no database named. */
function run(
  folder: string,
  command: string,
  ...args: string[]
): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const { DATABASE_URL: _, ...env } = process.env
  return new Promise((done) => {
    execFile(command, args, { cwd: folder, env }, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : error.code, stdout, stderr }),
    )
  })
}

describe('the program in the package', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'packed-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  it('works from the tarball, installed in an empty folder, by npx', async () => {
    const packed = await run('.', 'npm', 'pack', '--pack-destination', folder)
    expect(packed.code).toBe(0)
    const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz'))
    writeFileSync(join(folder, 'package.json'), '{ "name": "app", "private": true }')
    const install = [
      'install',
      '--prefer-offline',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      `./${tarball}`,
    ]
    expect(await run(folder, 'npm', ...install)).toMatchObject({ code: 0 })

    const help = await run(folder, 'npx', '--no-install', 'express-sql-rate-limit', '--help')
    expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('Usage: express-sql-rate-limit') })
    const schema = await run(folder, 'npx', '--no-install', 'express-sql-rate-limit', 'schema', '--json')
    expect(JSON.parse(schema.stdout).files[0].sql).toContain('CREATE TABLE IF NOT EXISTS rate_keys')
    // The driver is the application's: without one, it says which to install.
    const without = ['express-sql-rate-limit', 'top', '--url', 'mysql://app:hunter2@127.0.0.1:1/app']
    expect(await run(folder, 'npx', '--no-install', ...without)).toMatchObject({
      ...{ code: 3, stderr: expect.stringMatching(/npm install mysql2/) },
    })
    symlinkSync(resolve('node_modules/mysql2'), join(folder, 'node_modules', 'mysql2'))
    expect(await run(folder, 'npx', '--no-install', ...without)).toMatchObject({
      ...{ code: 3, stderr: expect.stringMatching(/Is the server running/) },
    })
  })

  it('works from a clone, by npx', async () => {
    const version = await run('.', 'npx', '--no-install', 'express-sql-rate-limit', '--version')
    expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })
})
