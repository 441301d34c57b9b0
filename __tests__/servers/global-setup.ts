// First, because jest maps imports of `.js` to `.ts` inside tests only: here it is tsx that does.
import 'tsx/cjs'
import { ChromiumUnavailableError } from '../browser/chromium-unavailable-error.js'
import { CHROMIUM_VARIABLE, obtainChromium } from '../browser/obtain-chromium.js'
import { obtainServer } from './obtain-server.js'
import { type ServerKind, serverKinds } from './server.js'
import { ServerUnavailableError } from './server-unavailable-error.js'
import { testRun } from './test-run.js'
import { serverVariable } from './test-servers.js'
import { type WantedProgram, wantedServers } from './wanted-servers.js'

/**
 * Starts the servers side by side, finds a browser, and tells the test workers of them through the environment: each has
 * servers of its own. What cannot be had is skipped, which the last line of the run says, unless RATE_LIMIT_TEST_SERVERS
 * asked for it by name.
 */
export default async function globalSetup({ maxWorkers }: { maxWorkers: number }): Promise<void> {
  const wanted = wantedServers()
  const workers = Array.from({ length: maxWorkers }, (_, i) => i + 1)
  // Those left from another run are gone.
  for (const kind of serverKinds) for (const each of workers) delete process.env[serverVariable(kind, each)]
  delete process.env[CHROMIUM_VARIABLE]
  const results = await Promise.allSettled([
    ...serverKinds.map((kind) => setUp(kind, workers, wanted)),
    setUpChromium(wanted),
  ])
  const failure = results.find((result) => result.status === 'rejected')
  if (!failure) return
  // Jest does not run the teardown after a failed setup.
  await Promise.all(testRun.servers.map((server) => server.stop()))
  throw failure.reason
}

async function setUp(
  kind: ServerKind,
  workers: readonly number[],
  wanted: readonly WantedProgram[] | undefined,
): Promise<void> {
  if (wanted && !wanted.includes(kind)) {
    testRun.skipped.push({ kind, reason: 'not in RATE_LIMIT_TEST_SERVERS' })
    return
  }
  try {
    // One after the other: what the first has unpacked and set up, the next finds there.
    for (const worker of workers) {
      const begin = performance.now()
      const server = await obtainServer(kind)
      testRun.servers.push(server)
      const { version, uri, source } = server
      process.env[serverVariable(kind, worker)] = JSON.stringify({ kind, version, uri })
      const seconds = ((performance.now() - begin) / 1000).toFixed(1)
      process.stderr.write(
        `${kind} ${version} on port ${new URL(uri).port || 3306}, ${source}, ${seconds} s\n`,
      )
    }
  } catch (error) {
    if (wanted || !(error instanceof ServerUnavailableError)) throw error
    process.stderr.write(`${error.message}\n`)
    testRun.skipped.push({ kind, reason: 'no server, see the start of this output' })
  }
}

async function setUpChromium(wanted: readonly WantedProgram[] | undefined): Promise<void> {
  const kind = 'chromium'
  if (wanted && !wanted.includes(kind)) {
    testRun.skipped.push({ kind, reason: 'not in RATE_LIMIT_TEST_SERVERS' })
    return
  }
  try {
    const info = await obtainChromium()
    process.env[CHROMIUM_VARIABLE] = JSON.stringify(info)
    process.stderr.write(`${info.version}, ${info.source}\n`)
  } catch (error) {
    if (wanted || !(error instanceof ChromiumUnavailableError)) throw error
    process.stderr.write(`${error.message}\n`)
    testRun.skipped.push({ kind, reason: 'no browser, see the start of this output' })
  }
}
