import { randomUUID } from 'node:crypto'
import { createGuard } from './create-guard.js'
import { freePort } from './free-port.js'
import { runCommand } from './run-command.js'
import type { PrivateServer, ServerKind, StartOptions } from './server.js'
import { waitUntilReady } from './wait-until-ready.js'

/**
 * Runs the image of a server in a container, on a port of 127.0.0.1, until it is stopped or this process
 * ends.
 */
export async function startDockerServer(
  kind: ServerKind,
  image: string,
  { flags = [], port: wantedPort, startTimeout = 120_000 }: StartOptions = {},
): Promise<PrivateServer> {
  // Chosen here and not by Docker, which would draw another one after each restart.
  const port = wantedPort ?? (await freePort())
  const uri = `mysql://root@127.0.0.1:${port}/`
  const name = `rate-limit-test-${kind}-${randomUUID().slice(0, 8)}`
  // `--volumes`: the image keeps its data in an anonymous volume, which would stay otherwise.
  const guard = createGuard(['docker', 'rm', '--force', '--volumes', name])
  const docker = (...args: string[]): Promise<string> => runCommand(['docker', ...args])
  const inspect = async (field: string): Promise<string> =>
    (await docker('inspect', '--format', `{{.State.${field}}}`, name)).trim()

  let pid = 0
  const ready = async (): Promise<string> => {
    const hopeless = async (): Promise<string | undefined> =>
      (await inspect('Running')) === 'true'
        ? undefined
        : `its container ended with ${await inspect('ExitCode')}`
    try {
      const version = await waitUntilReady({ uri }, { milliseconds: startTimeout, hopeless })
      pid = Number(await inspect('Pid'))
      return version
    } catch (cause) {
      const log = await docker('logs', '--tail', '20', name).catch(() => '')
      const reason = cause instanceof Error ? cause.message : cause
      throw new Error(`${kind} (Docker ${image}) did not start: ${reason}\n${log}`, { cause })
    }
  }
  try {
    await docker('run', ...runArguments(image, name, port), ...flags)
    const version = await ready()
    return {
      kind,
      version,
      uri,
      source: `Docker ${image}`,
      port,
      dataFolder: undefined,
      get pid() {
        return pid
      },
      async signal(signal) {
        await docker('kill', '--signal', signal, name)
      },
      async exited() {
        await docker('wait', name)
      },
      async restart(newFlags) {
        if (newFlags) throw new TypeError('A container cannot be restarted with other flags')
        await docker('kill', name).catch(() => {}) // it has ended already
        await docker('start', name)
        await ready()
      },
      stop: () => guard.release(),
    }
  } catch (error) {
    await guard.release()
    throw error
  }
}

function runArguments(image: string, name: string, port: number): string[] {
  return [
    ...['--detach', '--name', name, '--publish', `127.0.0.1:${port}:3306`],
    ...['--env', 'MYSQL_ALLOW_EMPTY_PASSWORD=yes', '--env', 'MARIADB_ALLOW_EMPTY_ROOT_PASSWORD=yes'],
    image,
    '--max-connections=400',
    '--innodb-buffer-pool-size=256M',
    '--performance-schema=OFF',
    '--skip-name-resolve', // the clients come from Docker's gateway, whose address often has no name
  ]
}
