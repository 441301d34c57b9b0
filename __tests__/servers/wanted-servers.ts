import { type ServerKind, serverKinds } from './server.js'

/** What a run brings that is not a package of npm: servers, and a browser. */
export type WantedProgram = ServerKind | 'chromium'

/**
 * The programs that RATE_LIMIT_TEST_SERVERS names (a list with commas, in which `sqlite` may stand too, as it
 * needs no server), or `undefined` when it is not set. Throws a `TypeError` for any other name, so that a
 * slip does not skip tests.
 */
export function wantedServers(): WantedProgram[] | undefined {
  const list = process.env.RATE_LIMIT_TEST_SERVERS
  if (!list?.trim()) return undefined
  const names = list.split(',').map((name) => name.trim())
  const known: readonly WantedProgram[] = [...serverKinds, 'chromium']
  const wrong = names.find((name) => name !== 'sqlite' && !known.some((each) => each === name))
  if (wrong !== undefined) {
    throw new TypeError(
      `Expected RATE_LIMIT_TEST_SERVERS to list sqlite, ${known.join(', ')}; got \`${wrong}\``,
    )
  }
  return known.filter((each) => names.includes(each))
}
