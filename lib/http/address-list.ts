import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { optionError } from '../stores/option-error.js'
import { holdsIpv4, innerIpv4, parseAddress } from './address-key.js'

/** The networks of one family: by length of the prefix in bits, the prefixes as texts of `0` and `1`. */
type Networks = Map<number, Set<string>>

/**
 * A test whether an address is in a list of addresses and CIDR ranges. Entries are parsed once, here; a question costs
 * one look-up for each length of prefix that occurs, however many entries there are.
 *
 * IPv4 and IPv6 are two families: `0.0.0.0/0` is all IPv4, `::/0` all IPv6. An IPv4 address inside of an IPv6 address
 * (`::ffff:203.0.113.9`, NAT64) is IPv4, in entries as in questions. Bits after the prefix are ignored: `10.1.2.3/8`
 * is `10.0.0.0/8`. No address (null) is in no list.
 *
 * @param name The option that the list was given as, for the error: `allowList` or `denyList`.
 *
 * @example
 * const isOurs = addressList('allowList', ['10.0.0.0/8', '2001:db8::/32', '203.0.113.9'])
 * isOurs(clientAddress(req))
 *
 * @throws TypeError for what is no array of addresses and ranges, with the option, the entry and the rule.
 */
export function addressList(name: string, entries: readonly string[]): (address: string | null) => boolean {
  if (!Array.isArray(entries)) throw optionError(name, 'an array of addresses and CIDR ranges', entries)
  const ipv4: Networks = new Map()
  const ipv6: Networks = new Map()
  // Not `forEach`, which passes over holes.
  for (const [i, entry] of entries.entries()) {
    const network = parseNetwork(entry)
    if (network === null) {
      throw optionError(
        `${name}[${i}]`,
        'an IPv4 or IPv6 address, or a range of them as in 10.0.0.0/8 or 2001:db8::/32',
        entry,
      )
    }
    const [address, length] = network
    const networks = address instanceof ipaddr.IPv6 ? ipv6 : ipv4
    const prefixes = networks.get(length)
    const prefix = bitsOf(address).slice(0, length)
    if (prefixes === undefined) networks.set(length, new Set([prefix]))
    else prefixes.add(prefix)
  }

  return (text) => {
    if (text === null || (ipv4.size === 0 && ipv6.size === 0)) return false
    const address = parseAddress(text)
    if (address === null) return false
    const networks = address instanceof ipaddr.IPv6 ? ipv6 : ipv4
    if (networks.size === 0) return false
    const bits = bitsOf(address)
    for (const [length, prefixes] of networks) if (prefixes.has(bits.slice(0, length))) return true
    return false
  }
}

const bitsOf = (address: ipaddr.IPv4 | ipaddr.IPv6): string =>
  address
    .toByteArray()
    .map((byte) => byte.toString(2).padStart(8, '0'))
    .join('')

/** Stricter than what is read from requests: an octal number, a port or a zone in a list is a mistake. */
function parseNetwork(entry: unknown): [ipaddr.IPv4 | ipaddr.IPv6, number] | null {
  const match = typeof entry === 'string' ? /^([\da-f.:]+)(?:\/(0|[1-9]\d{0,2}))?$/i.exec(entry) : null
  const text = match?.[1] ?? ''
  if (isIP(text) === 0) return null
  const address = ipaddr.parse(text)
  const whole = address instanceof ipaddr.IPv6 ? 128 : 32
  const length = match?.[2] === undefined ? whole : Number(match[2])
  if (length > whole) return null
  // A range that is wider than what holds IPv4 addresses is one of IPv6.
  const isIpv4 = address instanceof ipaddr.IPv6 && length >= 96 && holdsIpv4(address)
  return isIpv4 ? [innerIpv4(address), length - 96] : [address, length]
}
