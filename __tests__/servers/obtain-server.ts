import { databaseUrlServer } from './database-url-server.js'
import type { Server, ServerKind } from './server.js'
import { startServer } from './start-server.js'

/**
 * A server of the kind for ordinary use: the one of DATABASE_URL when it is of that kind, else a private one.
 * What breaks its server, or needs a special one, calls {@link startServer} instead.
 *
 * @example
 * const server = await obtainServer('mariadb')
 * console.log(server.version, server.uri)
 * await server.stop()
 */
export async function obtainServer(kind: ServerKind): Promise<Server> {
  const named = await databaseUrlServer()
  return named?.kind === kind ? named : startServer(kind)
}
