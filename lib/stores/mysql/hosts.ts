import { connect, type Socket } from 'node:net'
import type { DriverConfig, DriverConnection, DriverPool } from './driver.js'

/** How long a host is passed over that has failed once; each time in a row doubles it. In milliseconds. */
const REST_MS = 5_000
const LONGEST_REST_MS = 600_000
/**
 * How long a host may take to greet, in milliseconds. Shorter than the driver's own patience, which may have to last for
 * a login over a slow line: what never greets occupies a connection of a pool that has two.
 */
const GREETING_MS = 1_000
/** After so many deadlines in a row that passed on a host it has failed: one may be a lock that was waited for. */
const MOST_LATE = 3
/** The first byte of an error in place of the server's greeting, behind the header: too many connections, for one. */
const ERROR_PACKET = 0xff
const HEADER_BYTES = 4

interface Host {
  readonly name: string
  readonly port: number
  /** On the monotonic clock, in milliseconds. */
  restUntil: number
  restMs: number
  leftAt: number
  late: number
}

/**
 * The addresses of the single hosts in `mysql://user:password@one:3306,two:3306/database`, or null when it is no
 * such address. What is not of the host is the same for all.
 */
export function hostAddresses(uri: string): string[] | null {
  const [found, user = '', list = '', rest = ''] =
    /^mysql:\/\/([^/?#]*@)?([^@/?#]*)([/?#].*)?$/.exec(uri) ?? []
  if (found === undefined) return null
  const hosts = list.split(',')
  // A single one may be empty: a socket's path is told behind it.
  if (hosts.length > 1 && hosts.includes('')) return null
  const addresses = hosts.map((host) => `mysql://${user}${host}${rest}`)
  return addresses.every((address) => URL.canParse(address)) ? addresses : null
}

/**
 * Several hosts with the same database: nodes of a cluster, or a primary and its replicas. A new connection goes to
 * the first of them that has not failed of late. One that is open stays where it is until it fails, so that a host
 * that comes and goes is not followed.
 *
 * A host has failed when it refuses a connection, does not greet within a second, answers that it takes no
 * writes, or lets three deadlines pass in a row.
 */
export class Hosts {
  readonly #hosts: readonly Host[]
  /** By the configuration of a connection, which the driver copies for each. */
  readonly #hostOf = new WeakMap<DriverConfig, Host>()
  #failures = 0

  /** @param addresses - one address for each host, as `hostAddresses` gives them */
  constructor(addresses: readonly string[]) {
    this.#hosts = addresses.map((address) => {
      const { hostname, port } = new URL(address)
      const name = decodeURIComponent(hostname.replace(/^\[(.*)\]$/, '$1'))
      const fresh = { restUntil: Number.NEGATIVE_INFINITY, restMs: 0, leftAt: 0, late: 0 }
      return { name, port: port === '' ? 3306 : Number(port), ...fresh }
    })
  }

  /** Opens a socket to the host whose turn it is: mysql2's `stream` option. */
  readonly connect = ({ config }: { config: DriverConfig }): Socket => {
    const host = this.#next()
    this.#hostOf.set(config, host)
    // For TLS, which checks the name, and for traces.
    Object.assign(config, { host: host.name, port: host.port })
    const socket = connect(host.port, host.name)
    // As mysql2 does for the sockets it opens itself.
    socket.setNoDelay(true)
    socket.once('connect', () => socket.setKeepAlive(true))
    let judged = false
    const judge = (greeted: boolean): void => {
      clearTimeout(timer)
      if (!judged && !greeted) this.#leave(host)
      judged = true
    }
    const timer = setTimeout(() => {
      judge(false)
      socket.destroy(Object.assign(new Error('no greeting in time'), { code: 'ETIMEDOUT' }))
    }, GREETING_MS)
    timer.unref()
    // Ahead of mysql2's own listeners, so that the host is left before anybody is told.
    socket.once('data', (bytes) => judge(bytes[HEADER_BYTES] !== ERROR_PACKET))
    socket.once('error', () => judge(false))
    socket.once('close', () => judge(false))
    return socket
  }

  /** The pool, whose `getConnection` tries one host after the other. It must have been made with `connect`. */
  over(pool: DriverPool): DriverPool {
    const getConnection: DriverPool['getConnection'] = (callback) => {
      const attempt = (others: number): void => {
        const failures = this.#failures
        pool.getConnection((error, connection) => {
          if (error && others > 0 && this.#failures > failures) attempt(others - 1)
          else callback(error, connection)
        })
      }
      attempt(this.#hosts.length - 1)
    }
    return {
      getConnection,
      end: (callback) => pool.end(callback),
      on: (event, listener) => pool.on(event, listener),
      hosts: this.#hosts.length,
      report: (connection, outcome) => this.#report(connection, outcome),
    }
  }

  #report({ config }: DriverConnection, outcome: 'served' | 'late' | 'unfit'): void {
    const host = config && this.#hostOf.get(config)
    if (host === undefined) return
    host.late = outcome === 'late' ? host.late + 1 : 0
    if (outcome === 'unfit' || host.late >= MOST_LATE) this.#leave(host)
  }

  /** In order; when all have failed, the one whose failure is the longest ago. */
  #next(): Host {
    const now = performance.now()
    const [first, ...others] = this.#hosts as readonly [Host, ...Host[]]
    return (
      this.#hosts.find(({ restUntil }) => restUntil <= now) ??
      others.reduce((oldest, host) => (host.leftAt < oldest.leftAt ? host : oldest), first)
    )
  }

  #leave(host: Host): void {
    this.#failures += 1
    const now = performance.now()
    host.leftAt = now
    host.late = 0
    // The connections of a host fail together: that is one failure.
    if (host.restUntil > now) return
    const wellSince = now - host.restUntil
    host.restMs = wellSince > LONGEST_REST_MS ? REST_MS : Math.min(host.restMs * 2, LONGEST_REST_MS)
    host.restUntil = now + host.restMs
  }
}
