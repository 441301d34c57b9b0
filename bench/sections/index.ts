import type { Section } from '../section.js'
import { admitted } from './admitted.js'
import { denied } from './denied.js'
import { exactness } from './exactness.js'
import { growthKeys } from './growth-keys.js'
import { growthLimit } from './growth-limit.js'
import { growthMemory } from './growth-memory.js'
import { growthProcesses } from './growth-processes.js'
import { growthRows } from './growth-rows.js'
import { growthSnapshot } from './growth-snapshot.js'
import { growthSweep } from './growth-sweep.js'
import { httpLevel } from './http-level.js'
import { lease } from './lease.js'
import { mariadb } from './mariadb.js'
import { memory } from './memory.js'
import { oneCaller } from './one-caller.js'
import { roundTrips } from './round-trips.js'
import { sqlite } from './sqlite.js'

/** Every part of the benchmark, in the order in which they run and are reported. */
export const sections: readonly Section[] = [
  admitted,
  lease,
  denied,
  oneCaller,
  roundTrips,
  mariadb,
  sqlite,
  memory,
  exactness,
  httpLevel,
  growthRows,
  growthKeys,
  growthLimit,
  growthProcesses,
  growthSweep,
  growthSnapshot,
  growthMemory,
]
