import { runCommand } from './run-command.js'
import type { ServerKind } from './server.js'

const images = { mysql: 'mysql:9.7', mariadb: 'mariadb:10.11' } as const

/**
 * The image for a kind, pulled when this machine lacks it. Throws when no Docker engine runs or it cannot be
 * pulled.
 */
export async function dockerImage(kind: ServerKind): Promise<string> {
  const image = images[kind]
  await runCommand(['docker', 'version', '--format', '{{.Server.Version}}']).catch((cause) => {
    throw new Error('Docker: no engine answers', { cause })
  })
  await runCommand(['docker', 'image', 'inspect', image]).catch(() =>
    runCommand(['docker', 'pull', '-q', image]),
  )
  return image
}
