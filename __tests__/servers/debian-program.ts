import { basename, join } from 'node:path'
import { findLoader } from './find-loader.js'
import type { ServerKind } from './server.js'
import type { ServerProgram } from './server-program.js'
import { unpackDebianPackages } from './unpack-debian-packages.js'

// Debian's stable suites have MariaDB but no MySQL; unstable has MySQL's current long-term series.
const releases = {
  mysql: {
    suite: 'sid',
    core: 'mysql-server-core',
    program: 'usr/sbin/mysqld',
    plugins: 'usr/lib/mysql/plugin',
  },
  mariadb: {
    suite: 'bookworm',
    core: 'mariadb-server-core',
    program: 'usr/sbin/mariadbd',
    plugins: 'usr/lib/mysql/plugin',
  },
} as const

/**
 * A server from Debian's packages, unpacked into the cache. `extraPackages` come into the same root folder:
 * `debianProgram('mariadb', ['galera-4'])` has the library `usr/lib/galera/libgalera_smm.so` below
 * `program.root`.
 */
export async function debianProgram(
  kind: ServerKind,
  extraPackages: readonly string[] = [],
): Promise<ServerProgram> {
  const { suite, core, program, plugins } = releases[kind]
  const root = await unpackDebianPackages({ suite, packages: [core, ...extraPackages] })
  const { loader, libraries } = await findLoader(root)
  const shareFolder = join(root, 'usr/share/mysql')
  return {
    kind,
    source: `Debian ${suite}`,
    // The program's own loader, as the machine's C library may be older than what it was built for.
    command: [loader, '--library-path', libraries.join(':'), join(root, program)],
    flags: [
      `--basedir=${join(root, 'usr')}`,
      `--lc-messages-dir=${shareFolder}`,
      `--plugin-dir=${join(root, plugins)}`,
    ],
    shareFolder,
    root,
    cacheName: basename(root),
  }
}
