import { setTimeout as delay } from 'node:timers/promises'
import type { Denial } from '../../__tests__/processes/record-denials.js'
import { recordDenials } from '../../__tests__/processes/record-denials.js'
import { threeStatements } from '../../bench/contenders/three-statements.js'
import { Limiter, MysqlStore, SqliteStore } from '../../lib/index.js'
import type { Sighting } from './check-sightings.js'
import type { Place } from './options.js'

/** What a process does. */
export interface Work {
  readonly place: Place
  readonly name: string
  readonly limit: number
  readonly windowSeconds: number
  readonly retainSeconds: number
  readonly millis: number
  readonly byHand: boolean
}

/** What it saw. */
export interface Account {
  readonly sightings: Sighting[]
  /** Every denial that the store, not the memory, decided. */
  readonly denials: Denial[]
  /** How often the store could not decide, by the code of its error. */
  readonly codes: Record<string, number>
}

export type Report = 'ready' | { readonly account: Account } | { readonly failure: string }

/** The code of the store's error when it did not decide. */
type Answer = { readonly admitted: boolean } | { readonly code: string }

interface Subject {
  hit(key: string): Promise<Answer>
  close(): Promise<void>
}

/** How many hits of a process are under way at once. */
const CALLERS = 16
const BUSY_KEYS = 50
/** All processes turn to a new cold key at the same time, so that they race for its first row. In microseconds. */
const COLD_KEY_MICROS = 50_000
/** A client that was refused waits a little. In milliseconds. */
const REFUSED_MS = 5
const UNDECIDED_MS = 20

/** One clock for all processes of the machine, in microseconds. It never steps. */
const clock = (): number => Number(process.hrtime.bigint() / 1000n)

function nextKey(n: number): string {
  if (n % 3 === 0) return 'hot'
  if (n % 3 === 1) return `busy ${Math.floor(Math.random() * BUSY_KEYS)}`
  return `cold ${Math.floor(clock() / COLD_KEY_MICROS)}`
}

async function open(work: Work, denials: Denial[]): Promise<Subject> {
  const { place, name, limit, windowSeconds, retainSeconds, byHand } = work
  if (byHand) {
    if (!('uri' in place)) throw new TypeError('--by-hand is for MySQL')
    const instance = await threeStatements('mysql').open(place.uri, { limit, windowSeconds })
    const hit = async (key: string): Promise<Answer> =>
      instance.hit(`${name}:${key}`).then(
        (admitted) => ({ admitted }),
        () => ({ code: 'ERR_STORE_FAILED' }),
      )
    return { hit, close: () => instance.close() }
  }
  // No sweeps: they would remove other people's keys, if only abandoned ones.
  const inner =
    'uri' in place
      ? new MysqlStore({ ...place, sweepSeconds: false })
      : new SqliteStore({ filename: place.filename, sweepSeconds: false })
  const store = recordDenials(inner, denials)
  await store.install()
  const logger = { error: () => {} }
  const limiter = new Limiter({
    ...{ store, name, limit, windowSeconds, retainSeconds, logger },
    timeoutMs: 5000,
  })
  return {
    async hit(key) {
      const decision = await limiter.hit(key)
      if (decision.outcome === 'degraded') return { code: decision.error.code }
      return { admitted: decision.outcome === 'allowed' }
    },
    close: () => store.close(),
  }
}

async function run(subject: Subject, denials: Denial[], millis: number): Promise<Account> {
  const sightings: Sighting[] = []
  const codes: Record<string, number> = {}
  const end = clock() + millis * 1000
  let made = 0
  const caller = async (): Promise<void> => {
    while (clock() < end) {
      const key = nextKey(made)
      made += 1
      const sent = clock()
      const answer = await subject.hit(key)
      const answered = clock()
      if ('code' in answer) {
        codes[answer.code] = (codes[answer.code] ?? 0) + 1
        sightings.push({ key, sent, answered, outcome: 'undecided' })
        await delay(UNDECIDED_MS)
      } else {
        sightings.push({ key, sent, answered, outcome: answer.admitted ? 'admitted' : 'refused' })
        if (!answer.admitted) await delay(REFUSED_MS)
      }
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  return { sightings, denials, codes }
}

const say = (report: Report): Promise<void> =>
  new Promise((resolve) => process.send?.(report, undefined, undefined, () => resolve()))

// Ctrl-C reaches the whole group: the parent tells what is to be done.
process.on('SIGINT', () => {})
process.on('disconnect', () => process.exit())

async function main(): Promise<void> {
  const work = JSON.parse(process.env.CHECK_EXACT_WORK as string) as Work
  const denials: Denial[] = []
  const subject = await open(work, denials)
  process.once('message', async () => {
    const account = await run(subject, denials, work.millis)
    await subject.close().catch(() => {})
    await say({ account })
    process.disconnect()
  })
  await say('ready')
}

main().catch(async (error) => {
  await say({ failure: `${error?.code ?? error?.name}: ${error?.message}` })
  process.disconnect()
})
