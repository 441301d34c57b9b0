import { EXIT } from './exit-code.js'
import { run } from './run.js'

/**
 * The program, around `run`: its process, its variables, its signals.
 *
 * @param version - the package's
 */
export async function main(version: string): Promise<void> {
  // Node.js 22 calls its SQLite experimental, on every start: nothing that the reader of an answer can do about.
  process.removeAllListeners('warning')
  process.on('warning', ({ name, message }) => {
    if (name !== 'ExperimentalWarning') process.stderr.write(`${name}: ${message}\n`)
  })
  process.once('SIGINT', () => {
    process.stderr.write('\nInterrupted. What was done stays done.\n')
    process.exit(EXIT.interrupted)
  })
  process.exitCode = await run({
    args: process.argv.slice(2),
    databaseUrl: process.env.DATABASE_URL,
    version,
    stdout: process.stdout,
    stderr: process.stderr,
  })
}
