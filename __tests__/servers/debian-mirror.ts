import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type AptEntry, aptEntries } from './apt-entries.js'

/** A Debian mirror and the keys which its indexes must be signed with. */
export interface DebianMirror {
  readonly uri: string
  readonly keyring: string
}

const keyrings = ['gpg', 'pgp'].map((extension) => `/usr/share/keyrings/debian-archive-keyring.${extension}`)

/** The mirror that this machine's own apt uses; throws unless the machine runs Debian itself. */
export async function debianMirror(): Promise<DebianMirror> {
  // Ubuntu and others also have apt, but their mirrors have neither Debian's suites nor its signatures.
  const system = await readFile('/etc/os-release', 'utf8').catch(() => '')
  if (!/^ID="?debian"?$/m.test(system)) throw new Error('Debian packages: this machine does not run Debian')
  const entries = (await aptEntries()).filter(isDebianArchive)
  const entry = entries.find(({ signedBy }) => signedBy) ?? entries[0]
  const uri = entry?.uris.find(isOnline)
  const keyring = entry?.signedBy ?? keyrings.find((file) => existsSync(file))
  if (!uri || !keyring)
    throw new Error("Debian packages: apt's sources name no mirror, or its keys are missing")
  return { uri, keyring }
}

/**
 * Rules out `bookworm-security`, which is another archive, discs, and third parties that also call a suite
 * `bookworm`.
 */
function isDebianArchive({ types, uris, suites, components, signedBy }: AptEntry): boolean {
  return (
    types.includes('deb') &&
    components.includes('main') &&
    suites.some((suite) => /^[a-z]+$/.test(suite)) &&
    uris.some(isOnline) &&
    (signedBy === undefined || /^\/\S*debian-archive[^\s/]*$/.test(signedBy))
  )
}

function isOnline(uri: string): boolean {
  return !uri.startsWith('cdrom:')
}
