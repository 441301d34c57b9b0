import { isIP } from 'node:net'
import type { Request } from 'express'
import ipaddr from 'ipaddr.js'

/**
 * Bits of an IPv6 address that tell clients apart. One subscriber has at least a /64, often a /56, and could write
 * a new address for every request (hazard 116).
 */
const IPV6_PREFIX = 56

/** The key of requests that have no address, as on a Unix socket: they share one counter rather than go unlimited. */
const NO_ADDRESS = 'no-address'

/**
 * The key of a limiter without `keyFn`, and a part of yours: the client's address in its one canonical form, IPv6 by its
 * /56 prefix. It is Express's `req.ip`,
 * which follows the application's `trust proxy` setting; no header is read here. What is no address there (a port
 * beside it is taken off) never becomes a key: the address of the socket is used instead (hazards 113 to 116).
 *
 * @example
 * rateLimit({ store, limit: 15, windowSeconds: 900, keyFn: (req) => `login:${addressKey(req)}` })
 */
export function addressKey(req: Request): string {
  return canonical(req.ip) ?? canonical(req.socket.remoteAddress) ?? NO_ADDRESS
}

function canonical(text: string | undefined): string | null {
  const bare = withoutPort(text ?? '')
  if (isIP(bare) === 0) return null
  const address = ipaddr.parse(bare)
  if (!(address instanceof ipaddr.IPv6)) return address.toString()

  const bytes = address.toByteArray()
  // The same client arrives as 203.0.113.9 or ::ffff:203.0.113.9, depending on the listener. Decided by range, not
  // by notation; NAT64 (RFC 6052) holds an IPv4 client in its last four bytes too.
  if (address.isIPv4MappedAddress() || address.range() === 'rfc6052') return bytes.slice(12).join('.')
  // One machine, itself.
  if (address.range() === 'loopback') return address.toString()
  const prefix = bytes.map((byte, i) => (i < IPV6_PREFIX / 8 ? byte : 0))
  return `${ipaddr.fromByteArray(prefix).toString()}/${IPV6_PREFIX}`
}

/** Some proxies write `203.0.113.9:1234`, `[2001:db8::1]:99` or `fe80::1%eth0`. */
function withoutPort(text: string): string {
  if (text.length > 80) return ''
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1]
  const host = bracketed ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text
  return host.replace(/%.*$/, '')
}
