import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { Contender, Instance } from '../contenders/contender.js'
import { openPlace } from '../contenders/open-place.js'
import type { Servers } from '../section.js'
import { deniedTooEarly, mostWithin, type Sighting } from './sightings.js'

/** What a contender admits around the end of a window. */
export interface AcrossBoundary {
  readonly limit: number
  /** Hits certainly admitted within one second, which is the window. */
  readonly most: number
  /** Hits certainly denied although the window had room. */
  readonly tooEarly: number
  readonly hits: number
  readonly errors: number
}

const LIMIT = 20
const WINDOW_MS = 1000
const INSTANCES = 4
/** Between two hits of a caller that is denied. */
const KNOCK_MS = 10
const CALLERS = 8

/**
 * Spends one hit at the beginning of a window, the others late in it, and goes on over its end: where a limiter that
 * counts in fixed windows admits nearly twice its limit. Then it knocks on until the next end.
 */
export async function hitAcrossBoundary(contender: Contender, servers: Servers): Promise<AcrossBoundary> {
  const place = await openPlace(contender.store, servers)
  const count = contender.store === 'memory' ? 1 : INSTANCES
  const rule = { limit: LIMIT, windowSeconds: WINDOW_MS / 1000 }
  const instances = await Promise.all(Array.from({ length: count }, () => contender.open(place.at, rule)))
  const sightings: Sighting[] = []
  let errors = 0
  const hit = async (i: number): Promise<boolean> => {
    await setImmediate() // each begins in a turn of its own, as requests do
    const sent = performance.now()
    try {
      const admitted = await (instances[i % count] as Instance).hit('edge')
      sightings.push({ sent, answered: performance.now(), admitted })
      return admitted
    } catch {
      errors += 1
      return false
    }
  }
  try {
    for (let i = 0; i < count; i += 1) await (instances[i] as Instance).hit('warm')
    // Some count windows from the first hit, some from whole seconds of the clock: begin both at once.
    await sleep(WINDOW_MS - (Date.now() % WINDOW_MS) + 20)
    const begun = performance.now()
    await hit(0)
    await sleep(600 - (performance.now() - begun))
    await Promise.all(
      Array.from({ length: CALLERS }, async (_, i) => {
        while (performance.now() - begun < 1500) {
          if (!(await hit(i))) await sleep(KNOCK_MS)
        }
      }),
    )
    while (performance.now() - begun < 2300) {
      await hit(0)
      await sleep(KNOCK_MS)
    }
  } finally {
    for (const instance of instances) await instance.close()
    await place.remove()
  }
  const most = mostWithin(sightings, WINDOW_MS)
  const tooEarly = deniedTooEarly(sightings, WINDOW_MS, LIMIT)
  return { limit: LIMIT, most, tooEarly, hits: sightings.length, errors }
}
