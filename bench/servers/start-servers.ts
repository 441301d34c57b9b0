import { startServer } from '../../__tests__/servers/start-server.js'
import type { Servers } from '../section.js'
import { startRedis } from './start-redis.js'

/** The servers of a run, and how to end them. */
export interface RunningServers extends Servers {
  stop(): Promise<void>
}

/**
 * Starts MySQL, MariaDB and Redis, each private to this run and as durable as it is by default. Should one of them
 * not start, the others are stopped again.
 */
export async function startServers(): Promise<RunningServers> {
  const starting = [startServer('mysql'), startServer('mariadb'), startRedis()] as const
  const stop = async (): Promise<void> => {
    for (const server of await Promise.allSettled(starting)) {
      if (server.status === 'fulfilled') await server.value.stop()
    }
  }
  try {
    const [mysql, mariadb, redis] = await Promise.all(starting)
    return { mysql, mariadb, redis, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
