import { type ServerInfo, type ServerKind, serverKinds } from './server.js'

/**
 * The variable through which {@link testServers} learns of a server: its {@link ServerInfo} as JSON.
 *
 * @param worker - jest's worker that has it for itself, from 1: files that run at a time must not share the settings, the
 *   counters and the connections of a server
 */
export function serverVariable(kind: ServerKind, worker: number | string): string {
  return `RATE_LIMIT_TEST_${kind.toUpperCase()}_${worker}` // RATE_LIMIT_TEST_MYSQL_1, RATE_LIMIT_TEST_MARIADB_2
}

/** The server of that kind for this file, or `undefined` when it is skipped in this run. */
export function testServer(kind: ServerKind): ServerInfo | undefined {
  const text = process.env[serverVariable(kind, process.env.JEST_WORKER_ID ?? 1)]
  return text ? (JSON.parse(text) as ServerInfo) : undefined
}

/**
 * The servers of this run, which jest's global setup started. The list may be empty, which `describe.each`
 * refuses: see `describeServers`.
 */
export function testServers(): ServerInfo[] {
  return serverKinds.map(testServer).filter((server) => server !== undefined)
}
