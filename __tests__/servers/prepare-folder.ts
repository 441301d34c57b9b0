import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { createGuard, type Guard } from './create-guard.js'

const underWay = new Map<string, Promise<void>>()
const hour = 3_600_000

/**
 * Makes `folder` once and for all: `fill` gets an empty folder beside it, which is renamed when it is
 * complete. Hence a folder that exists is complete, an interrupted run leaves nothing that could be mistaken
 * for one, and of two processes which prepare the same folder the slower one drops its copy.
 */
export function prepareFolder(
  folder: string,
  fill: (partial: string, guard: Guard) => Promise<void>,
): Promise<void> {
  if (existsSync(folder)) return Promise.resolve()
  const work = underWay.get(folder) ?? prepare(folder, fill).finally(() => underWay.delete(folder))
  underWay.set(folder, work)
  return work
}

async function prepare(
  folder: string,
  fill: (partial: string, guard: Guard) => Promise<void>,
): Promise<void> {
  await mkdir(dirname(folder), { recursive: true })
  await removeAbandoned(folder)
  const partial = await mkdtemp(`${folder}.partial-`)
  const guard = createGuard(['rm', '-rf', '--', partial])
  try {
    await fill(partial, guard)
    await rename(partial, folder)
  } catch (error) {
    if (!existsSync(folder)) throw error
  } finally {
    await guard.release()
  }
}

/**
 * The guard removes a partial folder, unless the power failed or the whole container was killed. Age, not the
 * id of a process, tells those apart from work of others: a cache may be shared by containers, each with its
 * own numbers.
 */
async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(dirname(folder))) {
    if (!name.startsWith(`${basename(folder)}.partial-`)) continue
    const path = join(dirname(folder), name)
    const changed = await stat(path).catch(() => undefined)
    if (changed && Date.now() - changed.mtimeMs > hour) await rm(path, { recursive: true, force: true })
  }
}
