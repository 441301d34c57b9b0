import { Limiter, MysqlStore } from 'express-sql-rate-limit'
import { drive } from '../load/drive.js'
import { answerParent } from '../processes/answer-parent.js'
import { keyOf } from './fill-keys.js'
import { randomNumbers } from './random.js'
import { AMPLE, WINDOW_SECONDS } from './subject.js'
import { admittedHit } from './time-hits.js'

/** What one of several processes is asked: to hit random ones of so many keys in a database. */
export interface HitQuestion {
  readonly uri: string
  /** Of its random numbers: another one in each process. */
  readonly seed: number
  readonly keys: number
  readonly callers: number
  readonly millis: number
}

/** How many hits were decided. */
export type HitAnswer = number

interface Opened {
  readonly hit: (key: string) => Promise<boolean>
  readonly random: (count: number) => number
}

/** By the address of the database; opened when first asked for. */
const opened = new Map<string, Opened>()

answerParent<HitQuestion, HitAnswer>(async ({ uri, seed, keys, callers, millis }) => {
  const { hit, random } = opened.get(uri) ?? open(uri, seed)
  const { hits, error } = await drive(hit, { callers, nextKey: () => keyOf(random(keys)), millis })
  if (error !== undefined) throw new Error(error)
  return hits
})

function open(uri: string, seed: number): Opened {
  const limiter = new Limiter({
    store: new MysqlStore({ uri, sweepSeconds: false }),
    name: 'processes',
    limit: AMPLE,
    windowSeconds: WINDOW_SECONDS,
    timeoutMs: 20_000,
  })
  const made = { hit: admittedHit(limiter), random: randomNumbers(seed) }
  opened.set(uri, made)
  return made
}
