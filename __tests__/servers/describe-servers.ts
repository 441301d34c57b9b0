import type { ServerInfo } from './server.js'
import { testServers } from './test-servers.js'

/**
 * A `describe` for each server of this run, or one skipped test when there is none.
 *
 * @example
 * describeServers('the store', ({ kind }) => {
 *   test('counts', async () => {
 *     const database = await createTestDatabase(kind)
 *     …
 *     await database.drop()
 *   })
 * })
 */
export function describeServers(title: string, body: (server: ServerInfo) => void): void {
  const servers = testServers()
  if (servers.length === 0) test.skip(`${title}: no server in this run`, () => {})
  for (const server of servers) describe(`${title} on ${server.kind} ${server.version}`, () => body(server))
}
