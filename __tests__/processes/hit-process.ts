import { setTimeout as delay } from 'node:timers/promises'
import type { Sighting } from './check-sightings.js'
import { writeJournal } from './journal.js'
import { machineMicros } from './machine-clock.js'
import { openSubject, type Setting, type Subject } from './open-subject.js'
import { type Denial, denialRecorder } from './record-denials.js'
import { keysOf, type Traffic } from './traffic.js'

/** One run of hits. */
export interface Run {
  readonly traffic: Traffic
  /** Ends after so many hits, */
  readonly hits?: number
  /** or after so many milliseconds. */
  readonly millis?: number
  /** How many hits are under way at once. */
  readonly callers: number
  /** The longest that a caller waits between two hits, in milliseconds. Default 0. */
  readonly pauseMillis?: number
  /** How long a caller waits that was refused, or that nobody decided about, in milliseconds. Default 0. */
  readonly refusedMillis?: number
  readonly undecidedMillis?: number
  /** The part of the admitted hits that is given back, 0 to 1. Default 0. */
  readonly refundPart?: number
  /** Resets one of the keys every so many milliseconds. Default: none. */
  readonly resetEveryMillis?: number
  /** Whether each hit is told. Default true; a run of many minutes has too many, and a journal. */
  readonly tellsHits?: boolean
}

/** What a process saw. */
export interface Outcome {
  readonly sightings: Sighting[]
  /** Every denial that the store, not the memory, decided. */
  readonly denials: Denial[]
  readonly counts: Readonly<Record<Sighting['outcome'], number>>
  /** How often the store could not decide, give back or reset, by the code of its error. */
  readonly codes: Record<string, number>
  /** The longest that a hit took, in milliseconds. */
  readonly slowestMs: number
}

/** What a process holds, after a garbage collection, in bytes. */
export interface Memory {
  readonly heap: number
  readonly resident: number
}

export type Question = { readonly run: Run } | 'memory' | 'end'
export type Message =
  | 'ready'
  | { readonly failure: string }
  | { readonly outcome: Outcome }
  | { readonly memory: Memory }

const denials: Denial[] = []

async function run(subject: Subject, onError: (code: string) => void, wanted: Run): Promise<Outcome> {
  const { traffic, hits = Number.POSITIVE_INFINITY, millis = Number.POSITIVE_INFINITY, callers } = wanted
  const { pauseMillis = 0, refusedMillis = 0, undecidedMillis = 0, refundPart = 0 } = wanted
  const { resetEveryMillis = 0, tellsHits = true } = wanted
  denials.length = 0
  const sightings: Sighting[] = []
  const counts = { admitted: 0, refused: 0, undecided: 0 }
  const codes: Record<string, number> = {}
  let slowest = 0
  let made = 0
  const fail = (code: string): void => {
    codes[code] = (codes[code] ?? 0) + 1
    onError(code)
  }
  const failed = (error: unknown): void => fail(String((error as { code?: unknown }).code ?? error))
  const nextKey = keysOf(traffic)
  const end = machineMicros() + millis * 1000
  const caller = async (): Promise<void> => {
    while (made < hits && machineMicros() < end) {
      const key = nextKey()
      made += 1
      const sent = machineMicros()
      const answer = await subject.hit(key)
      const answered = machineMicros()
      slowest = Math.max(slowest, answered - sent)
      counts[answer.outcome] += 1
      if (tellsHits) sightings.push({ key, sent, answered, outcome: answer.outcome })
      if (answer.outcome === 'undecided') fail(answer.code)
      if (answer.outcome !== 'admitted')
        await pause(answer.outcome === 'refused' ? refusedMillis : undecidedMillis)
      else if (Math.random() < refundPart) await answer.refund().catch(failed)
      if (pauseMillis > 0) await delay(Math.random() * pauseMillis)
    }
  }
  const resetter = async (): Promise<void> => {
    while (machineMicros() < end) {
      await delay(resetEveryMillis)
      await subject.reset(nextKey()).catch(failed)
    }
  }
  const work = Array.from({ length: callers }, caller)
  if (resetEveryMillis > 0) work.push(resetter())
  await Promise.all(work)
  return { sightings, denials, counts, codes, slowestMs: slowest / 1000 }
}

/** A denial from memory takes no turn of the event loop: lets I/O in, as a server would. */
const pause = (millis: number): Promise<unknown> =>
  millis > 0 ? delay(millis) : new Promise((resolve) => setImmediate(resolve))

function memory(): Memory {
  global.gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  return { heap: heapUsed, resident: rss }
}

const say = (message: Message): Promise<void> =>
  new Promise((resolve) => process.send?.(message, undefined, undefined, () => resolve()))

async function main(): Promise<void> {
  const setting = JSON.parse(process.env.HIT_PROCESS_SETTING as string) as Setting
  const journal = setting.journal === undefined ? null : writeJournal(setting.journal)
  const subject = await openSubject(setting, journal?.recorder ?? denialRecorder(denials))
  process.on('message', async (question: Question) => {
    if (question === 'end') {
      await subject.close().catch(() => {})
      process.disconnect()
    } else if (question === 'memory') await say({ memory: memory() })
    else await say({ outcome: await run(subject, (code) => journal?.error(code), question.run) })
  })
  await say('ready')
}

// Ctrl-C reaches the whole group: the parent tells what is to be done.
process.on('SIGINT', () => {})
process.on('disconnect', () => process.exit())

main().catch(async (error) => {
  await say({ failure: `${error?.code ?? error?.name}: ${error?.message}` })
  process.disconnect()
})
