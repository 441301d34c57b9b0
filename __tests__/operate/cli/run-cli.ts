import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** How a run of the program ended. */
export interface Ended {
  readonly code: number | string | null | undefined
  readonly stdout: string
  readonly stderr: string
}

export interface CliOptions {
  /** The variable DATABASE_URL. */
  readonly databaseUrl?: string | undefined
  /** Variables beside it. */
  readonly environment?: Readonly<Record<string, string>>
}

/** Inside `node_modules`, from where the program finds its packages. */
const CACHE = 'node_modules/.cache/express-sql-rate-limit'
let folder: string | undefined

/** The program as it is packed, built anew for each test file: `dist` may be older than what is tested. */
export function builtProgram(): string {
  if (folder === undefined) {
    mkdirSync(CACHE, { recursive: true })
    folder = mkdtempSync(join(CACHE, 'cli-'))
    // For a test that runs it as another user.
    chmodSync(folder, 0o755)
    const dist = join(folder, 'dist', 'esm')
    const args = ['-p', 'tsconfig.esm.json', '--outDir', dist]
    for (const omitted of ['declaration', 'sourceMap', 'inlineSources']) args.push(`--${omitted}`, 'false')
    execFileSync('npx', ['--no-install', 'tsc', ...args], { stdio: 'inherit' })
    writeFileSync(join(dist, 'package.json'), '{ "type": "module" }')
    for (const name of ['bin', 'package.json']) cpSync(name, join(folder, name), { recursive: true })
  }
  return join(folder, 'bin', 'express-sql-rate-limit.js')
}

beforeAll(() => {
  builtProgram()
}, 120_000)
afterAll(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true })
})

/** Runs the real program as a process of its own. */
export function runCli(args: readonly string[], options: CliOptions = {}): Promise<Ended> {
  const { databaseUrl, environment = {} } = options
  const { DATABASE_URL: _, ...inherited } = process.env
  const env = {
    ...inherited,
    ...environment,
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
  }
  return new Promise((resolve) => {
    execFile(process.execPath, [builtProgram(), ...args], { env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    )
  })
}

/** Runs it with `--json`, and reads what it says: one document and nothing else. */
export async function runJson(
  args: readonly string[],
  options: CliOptions = {},
  // biome-ignore lint/suspicious/noExplicitAny: a document of any command
): Promise<{ code: Ended['code']; json: any }> {
  const { code, stdout } = await runCli([...args, '--json'], options)
  return { code, json: JSON.parse(stdout) }
}
