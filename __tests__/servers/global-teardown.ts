import 'tsx/cjs' // as in the setup
import { testRun } from './test-run.js'

/**
 * Stops the servers and removes their data, then says what was skipped. Under CI=true a skip fails the run.
 */
export default async function globalTeardown(): Promise<void> {
  const { servers, skipped } = testRun
  await Promise.all(servers.splice(0).map((server) => server.stop()))
  if (skipped.length === 0) return
  const list = skipped.splice(0).map(({ kind, reason }) => `${kind} (${reason})`)
  const line = `Skipped: ${list.join(', ')}`
  if (process.env.CI !== 'true') {
    process.stderr.write(`${line}\n`)
    return
  }
  // Thrown, since jest's --forceExit ignores `process.exitCode`; without a stack, so that the line remains
  // the last.
  const error = new Error(`A skipped server fails the run under CI=true.\n${line}`)
  error.stack = error.message
  throw error
}
