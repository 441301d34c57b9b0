import { constants } from 'node:fs'
import { cp, mkdir, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGuard } from './create-guard.js'
import { dataTemplate } from './data-template.js'
import { freePort } from './free-port.js'
import type { PrivateServer, StartOptions } from './server.js'
import { ServerProcess } from './server-process.js'
import type { ServerProgram } from './server-program.js'

/**
 * Runs a server program on 127.0.0.1, with a data folder and a port of its own, until it is stopped or this
 * process ends. Durability is left as the server has it by default; `root` has no password.
 *
 * @example
 * const server = await startProcessServer(await debianProgram('mariadb'), { flags: ['--log-bin'] })
 */
export async function startProcessServer(
  program: ServerProgram,
  { flags = [], port: wantedPort, startTimeout = 120_000, environment = {} }: StartOptions = {},
): Promise<PrivateServer> {
  const template = await dataTemplate(program)
  const port = wantedPort ?? (await freePort())
  // A short name: the path of a Unix socket may have 107 bytes, and macOS spends half of them on its
  // temporary folder.
  const folder = await mkdtemp(join(tmpdir(), `${program.kind}-`))
  const guard = createGuard(['rm', '-rf', '--', folder])
  const process = new ServerProcess(program, { folder, port, guard, startTimeout, environment })
  const stop = async (): Promise<void> => {
    await process.kill() // nobody will read the data, so an orderly end would only take time
    await guard.release()
  }
  try {
    const dataFolder = join(folder, 'data')
    await mkdir(join(folder, 'tmp'))
    await cp(template, dataFolder, { recursive: true, mode: constants.COPYFILE_FICLONE })
    const version = await process.start(flags)
    return {
      kind: program.kind,
      version,
      uri: `mysql://root@127.0.0.1:${port}/`,
      source: program.source,
      port,
      dataFolder,
      get pid() {
        return process.pid
      },
      async signal(name) {
        process.signal(name)
      },
      exited: () => process.exited(),
      async restart(newFlags = flags) {
        await process.kill()
        await process.start(newFlags)
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}
