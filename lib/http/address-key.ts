import { isIP } from 'node:net'
import type { Request } from 'express'
import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'
import { checkOptionNames, optionError } from '../stores/option-error.js'

/** A request that says where it comes from: one of Express, of Fastify, or of node:http. */
export interface AddressedRequest {
  readonly ip?: string | undefined
  readonly socket?: { readonly remoteAddress?: string | undefined } | undefined
}

/** How `addressKey` sees addresses. */
export interface AddressKeyOptions {
  /**
   * Bits of an IPv6 address that tell clients apart: a whole number from 32 to 128, or a function of the request that
   * returns one. Default 56: one subscriber has at least a /64, often a /56, and could write a new address for every
   * request (hazard 116). 128 counts each address for itself.
   */
  readonly ipv6Subnet?: number | ((req: Request) => number) | undefined
}

const DEFAULT_IPV6_SUBNET = 56

/** The key of requests that have no address, as on a Unix socket: they share one counter rather than go unlimited. */
const NO_ADDRESS = 'no-address'

/**
 * The key of a limiter without `keyFn`, and a part of yours: the client's address in its one canonical form, IPv6 by its
 * prefix, such as `2001:db8:1:2300::/56`. It is Express's `req.ip`,
 * which follows the application's `trust proxy` setting; no header is read here. What is no address there (a port
 * beside it is taken off) never becomes a key: the address of the socket is used instead (hazards 113 to 116). Requests
 * without any address share the key `no-address`.
 *
 * A request of node:http has no `ip`: there it is the address of the socket, which behind a proxy is the proxy's.
 *
 * @example
 * rateLimit({ store, limit: 15, windowSeconds: 900, keyFn: (req) => `login:${addressKey(req, { ipv6Subnet: 64 })}` })
 *
 * @throws TypeError for an unknown option, and for an `ipv6Subnet` that is, or returns for an IPv6 client, anything but
 *   a whole number from 32 to 128.
 */
export function addressKey(req: Request, options?: AddressKeyOptions): string
export function addressKey(
  req: AddressedRequest,
  options?: { readonly ipv6Subnet?: number | undefined },
): string
export function addressKey(req: AddressedRequest, options: AddressKeyOptions = {}): string {
  checkOptionNames('addressKey', options, ['ipv6Subnet'])
  const { ipv6Subnet = DEFAULT_IPV6_SUBNET } = options
  checkIpv6Subnet(ipv6Subnet)

  const address = clientOf(req)
  if (address === null) return NO_ADDRESS
  // Loopback is one machine, itself: a prefix would say more than that.
  if (!(address instanceof ipaddr.IPv6) || address.match(LOOPBACK)) return address.toString()

  const bits = typeof ipv6Subnet === 'function' ? ipv6Subnet(req as Request) : ipv6Subnet
  checkBits(bits)
  const network = address
    .toByteArray()
    .map((byte, i) => byte & (0xff00 >> Math.min(8, Math.max(0, bits - i * 8))))
  return `${ipaddr.fromByteArray(network).toString()}/${bits}`
}

/**
 * The client's whole address, IPv6 without its prefix, in the one form that `addressKey` builds on and that an
 * `allowList` or `denyList` is asked with; null when there is none. Read it before anything is awaited: it is gone once
 * the client has left (hazard 110).
 *
 * @example
 * clientAddress(req) // '203.0.113.9', also for ::ffff:203.0.113.9
 */
export function clientAddress(req: AddressedRequest): string | null {
  const { ip } = req
  const known = ip === undefined ? undefined : addresses.get(ip)
  if (known !== undefined) return known
  const address = parseAddress(ip)?.toString()
  if (ip === undefined || address === undefined)
    return parseAddress(req.socket?.remoteAddress)?.toString() ?? null
  addresses.set(ip, address)
  return address
}

/** The addresses of the last clients in their one form, by how they were written: parsing takes longer than a decision. */
const addresses = new LRUCache<string, string>({ max: 1000 })

/** @throws TypeError unless it can be an `ipv6Subnet`: what a function returns is checked with each request. */
export function checkIpv6Subnet(value: unknown): asserts value is number | ((req: Request) => number) {
  if (typeof value !== 'function') checkBits(value)
}

function checkBits(value: unknown): void {
  if (Number.isInteger(value) && (value as number) >= 32 && (value as number) <= 128) return
  throw optionError('ipv6Subnet', 'a whole number from 32 to 128, or a function that returns one', value)
}

// Mocks and adapters of serverless platforms have no socket (hazard 111).
const clientOf = (req: AddressedRequest) => parseAddress(req.ip) ?? parseAddress(req.socket?.remoteAddress)

/** The address in a text as proxies write it, an IPv4 address inside of IPv6 taken out; null for what is none. */
export function parseAddress(text: string | undefined): ipaddr.IPv4 | ipaddr.IPv6 | null {
  const bare = withoutPort(text ?? '')
  if (isIP(bare) === 0) return null
  const address = ipaddr.parse(bare)
  return address instanceof ipaddr.IPv6 && holdsIpv4(address) ? innerIpv4(address) : address
}

/**
 * The same client arrives as 203.0.113.9 or ::ffff:203.0.113.9, depending on the listener. Decided by range, not by
 * notation; NAT64 (RFC 6052) holds an IPv4 client in its last four bytes too.
 */
export const holdsIpv4 = (address: ipaddr.IPv6): boolean => address.match(MAPPED) || address.match(NAT64)

// PERF: to name the range of an address, ipaddr.js tries all ranges it knows: 8.4 µs for an IPv6 key, so 4.2.
const MAPPED = ipaddr.IPv6.parseCIDR('::ffff:0:0/96')
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')
const LOOPBACK = ipaddr.IPv6.parseCIDR('::1/128')

/** The IPv4 address in the last four bytes. */
export const innerIpv4 = (address: ipaddr.IPv6): ipaddr.IPv4 =>
  new ipaddr.IPv4(address.toByteArray().slice(12))

/** No address is longer, also with a port and a zone. */
const LONGEST_ADDRESS = 80

/** Some proxies write `203.0.113.9:1234`, `[2001:db8::1]:99` or `fe80::1%eth0`. */
function withoutPort(text: string): string {
  if (text.length > LONGEST_ADDRESS) return ''
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1]
  const host = bracketed ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text
  return host.replace(/%.*$/, '')
}
