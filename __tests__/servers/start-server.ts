import { dataTemplate } from './data-template.js'
import { debianProgram } from './debian-program.js'
import { dockerImage } from './docker-image.js'
import { pathProgram } from './path-program.js'
import type { PrivateServer, ServerKind, StartOptions } from './server.js'
import type { ServerProgram } from './server-program.js'
import { ServerUnavailableError } from './server-unavailable-error.js'
import { startDockerServer } from './start-docker-server.js'
import { startProcessServer } from './start-process-server.js'

/**
 * Starts a private server: from the program installed on this machine, else from Debian's packages, else in
 * Docker. Rejects with a {@link ServerUnavailableError} when none of these can be had, and with a plain
 * `Error` that holds the end of the server's log when it was had and did not start, for instance because of
 * wrong `flags`.
 *
 * @example
 * const server = await startServer('mysql', { flags: ['--binlog-format=STATEMENT'] })
 * const pool = createPool(server.uri)
 * await server.signal('SIGSTOP')
 * await server.stop()
 */
export async function startServer(kind: ServerKind, options: StartOptions = {}): Promise<PrivateServer> {
  const reasons: string[] = []
  for (const find of [pathProgram, debianProgram]) {
    const program = await usable(find, kind, reasons)
    if (program) return startProcessServer(program, options)
  }
  const image = await dockerImage(kind).catch(note(reasons))
  if (image) return startDockerServer(kind, image, options)
  throw new ServerUnavailableError(kind, reasons)
}

/**
 * A program counts only once it has made a data folder: an installed one may be confined (AppArmor does it to
 * Ubuntu's MySQL) to the folders of the system, and then the next way is worth trying.
 */
async function usable(
  find: (kind: ServerKind) => Promise<ServerProgram>,
  kind: ServerKind,
  reasons: string[],
): Promise<ServerProgram | undefined> {
  try {
    const program = await find(kind)
    await dataTemplate(program)
    return program
  } catch (error) {
    note(reasons)(error)
    return undefined
  }
}

function note(reasons: string[]): (error: unknown) => undefined {
  return (error) => {
    reasons.push(error instanceof Error ? error.message : String(error))
    return undefined
  }
}
