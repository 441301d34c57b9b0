import { fileURLToPath } from 'node:url'
import { hostAddresses } from '../../stores/mysql/hosts.js'
import { UsageError } from './usage-error.js'

/** Where the limiter counts. */
export type Address =
  | {
      readonly kind: 'mysql'
      /** One address for each host, in the order in which they are tried. */
      readonly uris: readonly string[]
      /** The same as one address, as the store takes it. */
      readonly uri: string
      readonly database: string
    }
  | { readonly kind: 'sqlite'; readonly filename: string }

const FORMS =
  'mysql://user:password@host:3306/database, mariadb://…, sqlite:limits.sqlite, or the name of a SQLite file without @'

/**
 * Reads an address: `--url`, else the variable DATABASE_URL.
 *
 * @throws UsageError without the address in it, as it may hold a password.
 */
export function readAddress(url: string | undefined, variable: string | undefined): Address {
  const address = findAddress(url, variable)
  if (address !== null) return address
  throw new UsageError(`Say where the limiter counts: --url or the variable DATABASE_URL. It is ${FORMS}`)
}

/** The same, or null where none is given. */
export function findAddress(url: string | undefined, variable: string | undefined): Address | null {
  const text = url ?? variable
  const source = url === undefined ? 'DATABASE_URL' : '--url'
  if (text === undefined || text === '') return null
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase()
  if (scheme === 'mysql' || scheme === 'mariadb') return mysqlAddress(text.replace(/^\w+:/, 'mysql:'), source)
  if (scheme === 'file') return sqliteAddress(filePath(text, source), source)
  if (scheme === 'sqlite') return sqliteAddress(text.replace(/^\w+:(\/\/)?/, ''), source)
  // What has a @ is rather an address whose scheme was forgotten, with a password in it, which no message may show.
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text) || text.includes('@'))
    throw new UsageError(`Expected ${source} to be ${FORMS}`)
  return sqliteAddress(text, source)
}

function mysqlAddress(uri: string, source: string): Address {
  const uris = hostAddresses(uri)
  const [first] = uris ?? []
  if (uris === null || first === undefined) {
    throw new UsageError(
      `Expected ${source} to be like mysql://user:password@host:3306/database. In a password, write @ as %40, : as %3A, / as %2F, # as %23 and % as %25`,
    )
  }
  const { username, password, pathname } = new URL(first)
  const [, , database] = [username, password, pathname.slice(1)].map((part) => decoded(part, source))
  if (database === undefined || database === '') {
    throw new UsageError(`Expected ${source} to end in the name of a database: mysql://…@host:3306/database`)
  }
  return { kind: 'mysql', uris, uri, database }
}

/** The driver decodes the parts too, and would fail without a word of where. */
function decoded(part: string, source: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new UsageError(
      `Expected every % in ${source} to be followed by two hexadecimal digits: a % itself is written %25`,
    )
  }
}

function filePath(url: string, source: string): string {
  try {
    return fileURLToPath(url)
  } catch {
    throw new UsageError(
      `Expected ${source} to be a file of this machine, as in file:///var/lib/limits.sqlite`,
    )
  }
}

function sqliteAddress(filename: string, source: string): Address {
  if (filename === '' || filename === ':memory:') {
    throw new UsageError(
      `Expected ${source} to name a file: what is in the memory of a process cannot be seen from outside`,
    )
  }
  return { kind: 'sqlite', filename }
}

/** The address as people may see it: without user, password and options. */
export function addressText(address: Address): string {
  if (address.kind === 'sqlite') return address.filename
  const hosts = address.uris.map((uri) => new URL(uri).host || 'localhost')
  return `${hosts.join(', ')}, database ${address.database}`
}
