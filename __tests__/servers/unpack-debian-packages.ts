import { mkdir, rm, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { cacheFolder } from './cache-folder.js'
import type { Guard } from './create-guard.js'
import { type DebianMirror, debianMirror } from './debian-mirror.js'
import { prepareFolder } from './prepare-folder.js'
import { runCommand } from './run-command.js'

/** Packages of one Debian suite. */
export interface DebianPackages {
  readonly suite: string
  readonly packages: readonly string[]
}

/**
 * Downloads packages with all that they depend on, down to the C library, and unpacks them into a folder of
 * the cache, which it returns. Nothing is installed: apt works with lists, an (empty) package database and a
 * cache of its own, so the suite need not be the machine's, and what it fetches is checked against the keys
 * of Debian's archive.
 *
 * @example
 * const root = await unpackDebianPackages({ suite: 'bookworm', packages: ['mariadb-server-core', 'galera-4'] })
 */
export async function unpackDebianPackages({ suite, packages }: DebianPackages): Promise<string> {
  const root = join(cacheFolder(), [suite, ...packages].join('+'))
  await prepareFolder(root, async (partial, guard) => {
    const mirror = await debianMirror()
    const apt = join(partial, 'apt')
    const configuration = await configureApt(apt, suite, mirror)
    const aptGet = ['apt-get', '-q', '-y', '-c', configuration]
    await runCommand([...aptGet, 'update'], { guard })
    await runCommand([...aptGet, 'install', '--download-only', ...packages], { guard })
    await unpack(join(apt, 'archives'), partial, guard)
    await rm(apt, { recursive: true })
  })
  return root
}

/**
 * Writes the configuration and returns its file. Given by `-c` it is read after the machine's own, so that a
 * proxy set there still holds while hooks, the default release and other suites do not.
 */
async function configureApt(folder: string, suite: string, { uri, keyring }: DebianMirror): Promise<string> {
  const architecture = (await runCommand(['dpkg', '--print-architecture'])).trim()
  await mkdir(join(folder, 'lists/partial'), { recursive: true })
  await mkdir(join(folder, 'archives/partial'), { recursive: true })
  await writeFile(join(folder, 'status'), '')
  await writeFile(
    join(folder, 'sources.list'),
    `deb [arch=${architecture} target=Packages signed-by=${keyring}] ${uri} ${suite} main\n`,
  )
  const file = join(folder, 'apt.conf')
  await writeFile(
    file,
    `Dir::State "${folder}";
Dir::State::lists "${folder}/lists";
Dir::State::status "${folder}/status";
Dir::Cache "${folder}";
Dir::Cache::archives "${folder}/archives";
Dir::Etc::sourcelist "${folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Install-Recommends "false";
APT::Install-Suggests "false";
APT::Default-Release "";
APT::Sandbox::User "root"; // the user _apt may be unable to enter the project's folder
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
`,
  )
  return file
}

async function unpack(archives: string, root: string, guard: Guard): Promise<void> {
  const script = `printf '%s\\0' "$1"/*.deb | xargs -0 -I '{}' -P "$3" dpkg -x '{}' "$2"`
  const processes = String(Math.min(availableParallelism(), 8))
  await runCommand(['sh', '-c', script, 'unpack', archives, root, processes], { guard })
}
