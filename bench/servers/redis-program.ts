import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { findLoader } from '../../__tests__/servers/find-loader.js'
import { unpackDebianPackages } from '../../__tests__/servers/unpack-debian-packages.js'

/**
 * What to run for a Redis server: the `redis-server` of this machine, else Debian's package, unpacked into the
 * cache in which the tests keep their servers.
 */
export async function redisProgram(): Promise<string[]> {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  const installed = folders.map((folder) => join(folder, 'redis-server')).find(existsSync)
  if (installed !== undefined) return [installed]
  const root = await unpackDebianPackages({ suite: 'bookworm', packages: ['redis-server'] })
  const { loader, libraries } = await findLoader(root)
  return [loader, '--library-path', libraries.join(':'), join(root, 'usr/bin/redis-server')]
}
