import { type ServerInfo, type ServerKind, serverKinds } from './server.js'

/** The variable through which {@link testServers} learns of a server: its {@link ServerInfo} as JSON. */
export function serverVariable(kind: ServerKind): string {
  return `RATE_LIMIT_TEST_${kind.toUpperCase()}` // RATE_LIMIT_TEST_MYSQL, RATE_LIMIT_TEST_MARIADB
}

/** The server of that kind in this run, or `undefined` when it is skipped. */
export function testServer(kind: ServerKind): ServerInfo | undefined {
  const text = process.env[serverVariable(kind)]
  return text ? (JSON.parse(text) as ServerInfo) : undefined
}

/**
 * The servers of this run, which jest's global setup started. The list may be empty, which `describe.each`
 * refuses: see `describeServers`.
 */
export function testServers(): ServerInfo[] {
  return serverKinds.map(testServer).filter((server) => server !== undefined)
}
