import type { Section } from '../section.js'
import { admitted } from './admitted.js'
import { denied } from './denied.js'
import { exactness } from './exactness.js'
import { mariadb } from './mariadb.js'
import { memory } from './memory.js'
import { oneCaller } from './one-caller.js'
import { roundTrips } from './round-trips.js'
import { sqlite } from './sqlite.js'

/** Every part of the benchmark, in the order in which they run and are reported. */
export const sections: readonly Section[] = [
  admitted,
  denied,
  oneCaller,
  roundTrips,
  mariadb,
  sqlite,
  memory,
  exactness,
]
