import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Reader } from '../reader.js'
import { megabytes } from './check-rows.js'
import { type Finding, note, ok, problem, warning } from './finding.js'

/** Kinds of file systems by the number that Linux gives them. SQLite's locks cannot be relied on over a network. */
const NETWORK: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB 2',
  1702057286: 'FUSE',
  16914839: '9P',
  1397113167: 'AFS',
  12805120: 'Ceph',
  198183888: 'Lustre',
  18225520: 'GFS2',
  1952539503: 'OCFS2',
}
const IN_MEMORY: Readonly<Record<number, string>> = { 16914836: 'tmpfs', 2240043254: 'ramfs' }

const MIB = 1_048_576
const LITTLE_DISK = 100 * MIB
const NO_DISK = 10 * MIB
/** A WAL is carried over into the file every four megabytes or so. */
const LARGE_WAL = 64 * MIB
/** The oldest SQLite whose syntax the schema keeps to. */
const OLDEST = [3, 35] as const
/** A larger file is not read to its end. */
const MOST_VERIFIED = 256 * MIB

/** What there is to check of the file of a SQLite store, and of what is under it; by the names of the findings. */
export function fileChecks(
  reader: Reader,
  filename: string,
): Record<string, () => Finding | Promise<Finding>> {
  const path = resolve(filename)
  return {
    version: () => version(reader),
    permissions: () => permissions(path),
    privacy: () => privacy(path),
    file_system: () => fileSystem(path),
    disk: () => disk(path),
    integrity: () => integrity(reader, path),
  }
}

async function version(reader: Reader): Promise<Finding> {
  const [text] = (await reader.query('SELECT sqlite_version()', []))[0] ?? []
  const [major = 0, minor = 0] = String(text).split('.').map(Number)
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return ok('version', `SQLite ${text}`)
  return problem(
    'version',
    `SQLite ${text} is too old.`,
    'Update Node.js, or better-sqlite3: npm install better-sqlite3@12',
  )
}

function permissions(path: string): Finding {
  const wanted = [
    path,
    dirname(path),
    ...['-wal', '-shm'].map((suffix) => path + suffix).filter((each) => existsSync(each)),
  ]
  const refused = wanted.filter((each) => !may(each, constants.R_OK | constants.W_OK))
  if (refused.length === 0) return ok('permissions', 'The file and its folder can be written.')
  return problem(
    'permissions',
    `This user may not write ${refused.join(', ')}.`,
    'SQLite writes the file, and makes two others beside it (-wal and -shm). Give the file and its folder to the user that the application runs as; run the doctor as that user too. The names are those of your system:',
    refused.map((each) => `chown app:app '${each}'`),
  )
}

function may(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch {
    return false
  }
}

function privacy(path: string): Finding {
  const { mode } = statSync(path)
  // Windows has no such bits.
  if (process.platform === 'win32' || (mode & 0o007) === 0)
    return ok('privacy', 'Other users of this machine cannot read it.')
  return note(
    'privacy',
    'Every user of this machine may read the file: keys hold addresses and names.',
    'On a machine that you share, take that right away:',
    [`chmod o-rwx '${path}'`],
  )
}

/** What a type of file system of Linux is. */
export function fileSystemKind(type: number): { kind: 'network' | 'memory' | 'disk'; name: string | null } {
  const network = NETWORK[type]
  if (network !== undefined) return { kind: 'network', name: network }
  const memory = IN_MEMORY[type]
  return memory === undefined ? { kind: 'disk', name: null } : { kind: 'memory', name: memory }
}

function fileSystem(path: string): Finding {
  if (process.platform !== 'linux')
    return ok('file_system', 'Not known on this system. It must be a local disk.')
  const { kind, name } = fileSystemKind(statfsSync(dirname(path)).type)
  if (kind === 'disk') return ok('file_system', 'A local disk, as far as the system tells.')
  if (kind === 'memory') {
    return note(
      'file_system',
      `The file lies in memory (${name}): it is gone when the machine restarts.`,
      'Fine if counters may begin anew then. Else put it on a disk.',
    )
  }
  return problem(
    'file_system',
    `The file lies on ${name}, which is no local disk.`,
    'SQLite relies on locks and shared memory that such file systems do not have, or not reliably: limits may be exceeded, and the file damaged. Put it on a local disk; for several machines use MySQL or MariaDB.',
  )
}

function disk(path: string): Finding {
  const { bavail, bsize } = statfsSync(dirname(path))
  const free = bavail * bsize
  const found = `${megabytes(free)} are free on its disk.`
  if (free >= LITTLE_DISK) return ok('disk', found)
  const advice =
    'On a full disk no decision can be stored, and the limiter does what onStoreError says. Make room, or move the file.'
  return free < NO_DISK ? problem('disk', found, advice) : warning('disk', found, advice)
}

async function integrity(reader: Reader, path: string): Promise<Finding> {
  const { size } = statSync(path)
  if (size > MOST_VERIFIED)
    return ok('integrity', `Not verified: the file has ${megabytes(size)}. PRAGMA quick_check does it.`)
  const rows = await reader.query('PRAGMA quick_check(1)', [])
  const said = String(rows[0]?.[0])
  if (said === 'ok') return ok('integrity', 'The file is sound.')
  return problem(
    'integrity',
    `The file is damaged: ${said}`,
    'Stop the application, move the file and the two beside it (-wal, -shm) away, and start again: counters begin anew. The usual reasons are a network file system, a copy made while it was in use, and a failing disk.',
  )
}

/** WAL mode, which the store asks for when it opens the file. Checked after it has done so. */
export async function checkJournal(reader: Reader, filename: string): Promise<Finding> {
  const [mode] = (await reader.query('PRAGMA journal_mode', []))[0] ?? []
  if (String(mode) !== 'wal') {
    return warning(
      'journal',
      `The journal mode is ${String(mode)}, not WAL.`,
      'The limiter is exact all the same, but slower, and readers and writers wait for each other. It asks for WAL whenever it opens the file: so the file system does not allow it, as on a network, or another program has set the mode back.',
    )
  }
  const wal = `${resolve(filename)}-wal`
  const size = existsSync(wal) ? statSync(wal).size : 0
  if (size < LARGE_WAL) return ok('journal', 'WAL.')
  return warning(
    'journal',
    `The WAL has grown to ${megabytes(size)}.`,
    'Some process has kept a transaction open for long, a backup or a tool with a cursor, so that the WAL could not be carried over into the file. End that process; then run: sqlite3 FILE "PRAGMA wal_checkpoint(TRUNCATE)"',
  )
}
