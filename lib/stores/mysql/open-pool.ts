import { storeErrorOf } from './classify-error.js'
import type { DriverPool, DriverSocket } from './driver.js'
import { Hosts, hostAddresses } from './hosts.js'

/** A pool of our own. */
export interface OwnPool {
  readonly pool: DriverPool
  /** Ends it, and leaves no socket open. */
  close(): Promise<void>
}

/**
 * Opens a pool of our own: two connections, one for the batches and one for everything beside them.
 *
 * `maxIdle` below `connectionLimit` is what makes mysql2 close idle connections at all (hazard 76), and they are
 * closed long before a server's or a load balancer's usual limit.
 *
 * @throws StoreError `ERR_STORE_CONFIG` when the driver is not installed.
 */
export async function openPool(source: string | object, multipleStatements: boolean): Promise<OwnPool> {
  const mysql2 = await import('mysql2').catch((error: unknown) => {
    throw storeErrorOf(error)
  })
  const addresses = (typeof source === 'string' && hostAddresses(source)) || []
  const hosts = addresses.length > 0 && addresses.every(isOverTcp) ? new Hosts(addresses) : null
  const options = {
    connectionLimit: 2,
    maxIdle: 1,
    idleTimeout: 30_000,
    connectTimeout: 2_000,
    ...(typeof source === 'string' ? { uri: addresses[0] ?? source } : source),
    multipleStatements,
    typeCast: true,
    ...(hosts !== null && { stream: hosts.connect }),
  }
  const pool = mysql2.createPool(options) as unknown as DriverPool & { config: { resetOnRelease?: boolean } }
  // It would take the sessions' settings away behind our back, and with them every transaction: `autocommit` is off in them.
  pool.config.resetOnRelease = false
  const sockets = new Set<DriverSocket>()
  pool.on('connection', ({ stream }) => {
    if (stream === undefined) return
    sockets.add(stream)
    stream.once('close', () => sockets.delete(stream))
  })
  const close = async (): Promise<void> => {
    await new Promise<void>((resolve) => pool.end(() => resolve()))
    // The driver waits for the server to close them, for as long as that hangs, or the network is gone.
    for (const socket of sockets) socket.destroySoon()
  }
  return { pool: hosts === null ? pool : hosts.over(pool), close }
}

const isOverTcp = (address: string): boolean => {
  const { hostname, searchParams } = new URL(address)
  return hostname !== '' && !searchParams.has('socketPath')
}
