import { checkExact } from './check-exact.js'
import { type CheckOptions, HELP, parseOptions } from './options.js'
import { verdictText } from './verdict.js'

async function main(): Promise<void> {
  const options = readOptions()
  if (options === null) return void process.stdout.write(HELP)
  const { processes, seconds } = options
  const stop = new AbortController()
  const interrupt = (): void => stop.abort(new Error('interrupted'))
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  process.stdout.write(`Hitting for ${seconds} seconds from ${processes} processes …\n`)
  const findings = await checkExact(options, stop.signal)
  process.stdout.write(verdictText(findings))
  process.exitCode = findings.faults.length > 0 ? 1 : 0
}

function readOptions(): CheckOptions | null {
  try {
    return parseOptions(process.argv.slice(2))
  } catch (error) {
    throw new Error(`${(error as Error).message}\nnpm run check:exact -- --help`)
  }
}

main().catch((error) => {
  const { code, message } = error as { code?: string; message?: string }
  const reason = message || code || String(error)
  // Our statements are right, so a server that cannot read them was sent more than one where it takes one.
  const hint = reason.includes('ER_PARSE_ERROR')
    ? '\nTry --single-statements: a proxy may refuse several.'
    : ''
  process.stderr.write(`COULD NOT BE RUN: ${reason}${hint}\n`)
  process.exitCode = 2
})
