import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { delimiter, dirname, join, resolve } from 'node:path'
import { runCommand } from './run-command.js'
import type { ServerKind } from './server.js'
import type { ServerProgram } from './server-program.js'

const names = { mysql: ['mysqld'], mariadb: ['mariadbd', 'mysqld'] } as const
// Servers live where the PATH of an ordinary user does not look.
const systemFolders = ['/usr/sbin', '/usr/local/sbin', '/usr/libexec']

/** The server program that is installed on this machine, of whatever version. Throws when there is none. */
export async function pathProgram(kind: ServerKind): Promise<ServerProgram> {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), ...systemFolders]
  for (const file of new Set(folders.flatMap((folder) => names[kind].map((name) => resolve(folder, name))))) {
    if (!existsSync(file)) continue
    // MariaDB also installs itself as `mysqld`, so only the version tells which one it is.
    const version = await runCommand([file, '--no-defaults', '--version']).catch(() => '')
    if (!version || /mariadb/i.test(version) !== (kind === 'mariadb')) continue
    const shareFolder = shareFolderOf(await realpath(file))
    const identity = createHash('sha256').update(`${file}\n${version}`).digest('hex').slice(0, 16)
    return {
      kind,
      source: file,
      command: [file],
      flags: [],
      shareFolder,
      root: undefined,
      cacheName: `installed-${kind}-${identity}`,
    }
  }
  throw new Error(`PATH: no ${names[kind].join(' or ')} which is ${kind === 'mysql' ? 'MySQL' : 'MariaDB'}`)
}

function shareFolderOf(program: string): string {
  const share = join(dirname(program), '../share')
  return ['mariadb', 'mysql'].map((name) => join(share, name)).find((folder) => existsSync(folder)) ?? share
}
