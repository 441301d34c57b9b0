import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
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

/**
 * Libraries lie in `lib/<architecture>` or, since Debian merged the two, all in `usr/lib/<architecture>`. The
 * links to the loader from `lib64` are absolute: they lead to the machine's own.
 */
async function findLoader(root: string): Promise<{ loader: string; libraries: string[] }> {
  let loader: string | undefined
  const libraries: string[] = []
  for (const parent of [join(root, 'usr/lib'), join(root, 'lib')]) {
    const folders = await readdir(parent).catch(() => [])
    for (const folder of folders
      .filter((name) => name.includes('-linux-'))
      .map((name) => join(parent, name))) {
      const files = await readdir(folder, { withFileTypes: true })
      const found = files.find((file) => file.isFile() && /^ld(-linux.*|64)\.so\.\d$/.test(file.name))
      if (found) loader = join(folder, found.name)
      libraries.push(folder)
    }
  }
  if (!loader) throw new Error(`Debian packages: no loader below ${root}`)
  return { loader, libraries }
}
