import { type ServerKind, serverKinds } from './server.js'

/**
 * The kinds that RATE_LIMIT_TEST_SERVERS names (a list with commas, in which `sqlite` may stand too, as it
 * needs no server), or `undefined` when it is not set. Throws a `TypeError` for any other name, so that a
 * slip does not skip tests.
 */
export function wantedServers(): ServerKind[] | undefined {
  const list = process.env.RATE_LIMIT_TEST_SERVERS
  if (!list?.trim()) return undefined
  const names = list.split(',').map((name) => name.trim())
  const wrong = names.find((name) => name !== 'sqlite' && !serverKinds.some((kind) => kind === name))
  if (wrong !== undefined) {
    throw new TypeError(
      `Expected RATE_LIMIT_TEST_SERVERS to list sqlite, ${serverKinds.join(', ')}; got \`${wrong}\``,
    )
  }
  return serverKinds.filter((kind) => names.includes(kind))
}
