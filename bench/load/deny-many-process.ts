import { setImmediate } from 'node:timers/promises'
import type { Contender } from '../contenders/contender.js'
import * as lineUp from '../contenders/line-up.js'
import { hoursAway } from '../exactness/window-boundary.js'
import type { DenyManyTask, ManyDenied } from './deny-many.js'
import { drive, type Outcome } from './drive.js'
import { keysInTurn } from './random-keys.js'

/** Some hundred at a time, as an attack has it; our batches take them together. */
const CALLERS = 256

// A process of its own, so that its heap and its CPU time are those of this work alone.
const task = JSON.parse(process.argv[2] ?? '') as DenyManyTask
const contender = Object.values<Contender>(lineUp).find(
  ({ name, store }) => name === task.name && store === task.store,
)
if (contender === undefined) throw new Error(`Expected a contender of the line-up, got ${task.name}`)

const { hit, close } = await contender.open(task.place, { limit: 1, windowSeconds: hoursAway() })
const drivePart = (first: number, hits: number, prefix = 'many'): Promise<Outcome> =>
  drive(hit, { callers: CALLERS, hits, nextKey: keysInTurn(hits, prefix, first) })
// Both ways are compiled before anything counts, with keys that are not used again.
for (let i = 0; i < 2; i += 1) await drivePart(0, 2000, 'warm')
const before = await heapMegabytes()
let first = 0
for (const keys of task.stages) {
  const admitted = await drivePart(first, keys - first)
  const denied = await drivePart(first, keys - first)
  const again = await drivePart(0, keys)
  const heldMegabytes = (await heapMegabytes()) - before
  const stage: ManyDenied = { contender: task.name, keys, admitted, denied, again, heldMegabytes }
  process.send?.(stage)
  first = keys
}
await close()
process.disconnect()

async function heapMegabytes(): Promise<number> {
  // Twice, with a turn between: what has a finaliser goes in the second.
  globalThis.gc?.()
  await setImmediate()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 2 ** 20
}
