import { spawn } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { createGuard } from '../../__tests__/servers/create-guard.js'
import { freePort } from '../../__tests__/servers/free-port.js'
import { redisProgram } from './redis-program.js'

/** A Redis server of this run alone. */
export interface RedisServer {
  readonly uri: string
  readonly version: string
  /** Ends it and removes what it wrote. */
  stop(): Promise<void>
}

/** Starts Redis with its default configuration on 127.0.0.1, in a folder of its own. */
export async function startRedis(): Promise<RedisServer> {
  const [command = '', ...args] = await redisProgram()
  const folder = await mkdtemp(join(tmpdir(), 'redis-'))
  const guard = createGuard(['rm', '-rf', '--', folder])
  const port = await freePort()
  const place = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder]
  // `detached` gives it a process group, for the guard to kill should this process die.
  const child = spawn(command, [...args, ...place], { detached: true, stdio: 'ignore' })
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  guard.watch(child.pid)
  child.unref()
  const stop = async (): Promise<void> => {
    child.ref()
    child.kill('SIGKILL')
    await exited
    guard.watch(undefined)
    await guard.release()
  }
  const uri = `redis://127.0.0.1:${port}`
  try {
    return { uri, version: await askVersion(uri), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Waits, a few seconds at the most, until the server answers. */
async function askVersion(uri: string): Promise<string> {
  const client = createClient({
    url: uri,
    socket: { reconnectStrategy: (tries) => (tries > 100 ? new Error('Redis did not start') : 50) },
  })
  client.on('error', () => {}) // refused until it listens; connect() rejects when it never does
  await client.connect()
  const info = await client.info('server')
  client.destroy()
  return /redis_version:(\S+)/.exec(info)?.[1] ?? 'unknown'
}
