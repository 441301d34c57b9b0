import { loadTest } from './load-test.js'
import { HELP, type LoadOptions, parseOptions } from './options.js'
import { verdictOf } from './verdict.js'

async function main(): Promise<void> {
  const options = readOptions()
  if (options === null) return void process.stdout.write(HELP)
  const stop = new AbortController()
  const interrupt = (): void => stop.abort(new Error('interrupted'))
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  process.stdout.write(`Load on ${options.server} for ${options.seconds} seconds …\n`)
  const findings = await loadTest(options, stop.signal, (text) => process.stdout.write(`${text}\n`))
  const { holds, text } = verdictOf(findings)
  process.stdout.write(text)
  process.exitCode = holds ? 0 : 1
}

function readOptions(): LoadOptions | null {
  try {
    return parseOptions(process.argv.slice(2))
  } catch (error) {
    throw new Error(`${(error as Error).message}\nnpm run test:load -- --help`)
  }
}

main().catch((error) => {
  process.stderr.write(`COULD NOT BE RUN: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 2
})
