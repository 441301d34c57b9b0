import { machineMicros } from './machine-clock.js'

/** Which keys a process hits. */
export type Traffic =
  /** `key first` to `key first+count−1` in turn, beginning with any of them. */
  | { readonly first: number; readonly count: number; readonly begin: number }
  /** In turn one hot key, busy ones, and cold ones to which all processes come at the same time. */
  | 'hot, busy and cold'
  /** Any of so many keys, of which some leave for good and others come; and for a part of the hits, 0 to 1, one hot key. */
  | { readonly keys: number; readonly comingPerSecond: number; readonly hotPart: number }

const BUSY_KEYS = 50
/** All processes turn to a new cold key at the same time, so that they race for its first row. In microseconds. */
const COLD_KEY_MICROS = 50_000

/** The one key that is hit far more often than others. */
export const HOT_KEY = 'hot'

/** Gives the key of each next hit. */
export function keysOf(traffic: Traffic): () => string {
  let made = 0
  if (traffic === 'hot, busy and cold') {
    return () => {
      made += 1
      if (made % 3 === 1) return HOT_KEY
      if (made % 3 === 2) return `busy ${Math.floor(Math.random() * BUSY_KEYS)}`
      return `cold ${Math.floor(machineMicros() / COLD_KEY_MICROS)}`
    }
  }
  if ('keys' in traffic) {
    const { keys, comingPerSecond, hotPart } = traffic
    return () => {
      if (Math.random() < hotPart) return HOT_KEY
      const first = Math.floor((machineMicros() / 1e6) * comingPerSecond)
      return `key ${first + Math.floor(Math.random() * keys)}`
    }
  }
  const { first, count, begin } = traffic
  return () => {
    const key = `key ${first + ((begin + made) % count)}`
    made += 1
    return key
  }
}
