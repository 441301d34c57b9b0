import { setImmediate } from 'node:timers/promises'
import type { Contender } from '../contenders/contender.js'
import { openPlace } from '../contenders/open-place.js'
import type { Context } from '../section.js'
import { hoursAway } from './window-boundary.js'

/** How many hits a contender admitted of a limit, on keys that nobody had used before. */
export interface ColdKeys {
  readonly limit: number
  /** Of each key. */
  readonly admitted: readonly number[]
  readonly errors: number
}

const LIMIT = 100
const KEYS = 3
const KEYS_QUICK = 1
/** Application processes have a pool each, so that many connections meet on a key. */
const INSTANCES = 4
const CALLERS = 32
const HITS_A_KEY = 200

const known = new WeakMap<Contender, Promise<ColdKeys>>()

/**
 * Lets 32 callers over 4 instances meet on cold keys, one after the other. No window ends meanwhile, so an exact limiter
 * admits 100 on each, whatever its algorithm. Once a run and contender.
 */
export function coldKeysOf(contender: Contender, context: Context): Promise<ColdKeys> {
  const found = known.get(contender) ?? meetOnColdKeys(contender, context)
  known.set(contender, found)
  return found
}

async function meetOnColdKeys(contender: Contender, { servers, quick }: Context): Promise<ColdKeys> {
  const place = await openPlace(contender.store, servers)
  // In memory, each instance would have a limit of its own.
  const count = contender.store === 'memory' ? 1 : INSTANCES
  const rule = { limit: LIMIT, windowSeconds: hoursAway() }
  const instances = await Promise.all(Array.from({ length: count }, () => contender.open(place.at, rule)))
  const admitted: number[] = []
  let errors = 0
  try {
    for (let k = 0; k < (quick ? KEYS_QUICK : KEYS); k += 1) {
      let hits = 0
      let sum = 0
      const call = async (_: unknown, i: number): Promise<void> => {
        const instance = instances[i % count]
        while (hits < HITS_A_KEY) {
          hits += 1
          await setImmediate() // each begins in a turn of its own, as requests do
          try {
            if (await instance?.hit(`cold:${k}`)) sum += 1
          } catch {
            errors += 1
          }
        }
      }
      await Promise.all(Array.from({ length: CALLERS }, call))
      admitted.push(sum)
    }
  } finally {
    for (const instance of instances) await instance.close()
    await place.remove()
  }
  return { limit: LIMIT, admitted, errors }
}

/** For a table: `exactly 100`, or `104–131 of 100`. */
export function coldKeysText({ limit, admitted, errors }: ColdKeys): string {
  const [least, most] = [Math.min(...admitted), Math.max(...admitted)]
  const failed = errors === 0 ? '' : `, ${errors} errors`
  if (least === limit && most === limit) return `exactly ${limit}${failed}`
  return `${least === most ? most : `${least}–${most}`} of ${limit}${failed}`
}
