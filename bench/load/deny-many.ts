import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Contender, StoreKind } from '../contenders/contender.js'
import { openPlace } from '../contenders/open-place.js'
import type { Context } from '../section.js'
import type { Outcome } from './drive.js'

/** What hits cost when so many distinct keys have been denied. */
export interface ManyDenied {
  readonly contender: string
  readonly keys: number
  /** The keys since the stage before: their admitted hits, */
  readonly admitted: Outcome
  /** the first denied hit of each, */
  readonly denied: Outcome
  /** and as many denied hits as all keys, each of another. */
  readonly again: Outcome
  /** Of the heap, after a collection, more than before the first key. */
  readonly heldMegabytes: number
}

/** What the process is told. */
export interface DenyManyTask {
  readonly name: string
  readonly store: StoreKind
  readonly place: string
  readonly stages: readonly number[]
}

/** Admits and denies, in a process of its own, ever more distinct keys of limit 1: up to each of `stages`. */
export async function denyMany(
  context: Context,
  { name, store }: Contender,
  stages: readonly number[],
): Promise<ManyDenied[]> {
  const place = await openPlace(store, context.servers)
  const task: DenyManyTask = { name, store, place: place.at, stages }
  const child = fork('bench/load/deny-many-process.ts', [JSON.stringify(task)], {
    execArgv: ['--import', 'tsx', '--expose-gc'],
  })
  const found: ManyDenied[] = []
  child.on('message', (stage: ManyDenied) => {
    found.push(stage)
    context.step(`${name}, ${stage.keys} distinct denied keys`)
  })
  const [code] = await once(child, 'exit')
  await place.remove()
  if (code !== 0) throw new Error(`Denying many keys of ${name} ended with ${code}`)
  return found
}
