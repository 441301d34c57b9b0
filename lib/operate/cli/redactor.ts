/** Anything between `//user:` and the last `@`, and options of an address that are secrets. */
const USER_INFO = /(:\/\/[^\s:/@]*):(\S*)@/g
const SECRET_OPTION = /([?&](?:password\w*|passphrase|ssl)=)([^&#\s]+)/gi

/**
 * A function that takes passwords out of a text: those of the addresses given, in every spelling in which they may
 * come back (as written, decoded, encoded), and whatever looks like a password in an address.
 *
 * For texts that we did not write: of the driver, and of what repeats the command line.
 */
export function redactor(sources: readonly string[]): (text: string) => string {
  const secrets = new Set<string>()
  for (const source of sources) {
    for (const pattern of [USER_INFO, SECRET_OPTION]) {
      for (const [, , secret = ''] of source.matchAll(pattern)) addSpellings(secrets, secret)
    }
  }
  // The longest first, as one may be a part of another.
  const ordered = [...secrets].sort((a, b) => b.length - a.length)
  return (text) => {
    const known = ordered.reduce((rest, secret) => rest.replaceAll(secret, '***'), text)
    return known.replace(USER_INFO, '$1:***@').replace(SECRET_OPTION, '$1***')
  }
}

function addSpellings(secrets: Set<string>, secret: string): void {
  if (secret === '') return
  let plain = secret
  try {
    plain = decodeURIComponent(secret)
  } catch {
    // Not encoded: as it is.
  }
  for (const spelling of [secret, plain, encodeURIComponent(plain), encodeURI(plain)]) secrets.add(spelling)
}
