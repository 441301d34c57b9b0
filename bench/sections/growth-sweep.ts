import { setTimeout as sleep } from 'node:timers/promises'
import { type Limiter, MysqlStore, StoreError } from 'express-sql-rate-limit'
import { fillKeys, keyOf } from '../growth/fill-keys.js'
import { randomNumbers } from '../growth/random.js'
import { AMPLE, openSubjects, type Subject, WINDOW_SECONDS } from '../growth/subject.js'
import { type Disturbed, describeTails } from '../growth/tails.js'
import { timeCallers } from '../growth/time-hits.js'
import { spreadOf } from '../load/spread.js'
import { takeTurns } from '../load/take-turns.js'
import { number } from '../report/number.js'
import type { Context, Findings, Section } from '../section.js'

const KEYS = 1000
const CALLERS = 16
/** Longer ago than a window and all that a head is kept beyond it. */
const EXPIRED_SECONDS = 3 * WINDOW_SECONDS
/** For what the sweep has left behind to come to rest, in milliseconds. */
const REST_MS = 200
/** So that every key is there, and the code is warm. */
const WARM_UP_MS = 500

interface Plan {
  /** Each with one event: so many rows in either table. */
  readonly expired: number
  readonly rounds: number
  readonly millis: number
}

const planOf = (quick: boolean): Plan =>
  quick ? { expired: 25_000, rounds: 2, millis: 350 } : { expired: 250_000, rounds: 4, millis: 800 }

interface Case {
  readonly subject: Subject
  readonly limiter: Limiter
}

interface Round {
  readonly quiet: readonly number[]
  readonly sweeping: readonly number[]
  readonly keysPerSecond: number
}

/** What a sweep does to the decisions that run beside it. */
export const growthSweep: Section = {
  id: 'growth-sweep',
  title: 'Growth: while a sweep runs',
  steps: (quick) => planOf(quick).rounds + 1,
  async run({ quick, servers, step }: Context): Promise<Findings> {
    const { expired, rounds, millis } = planOf(quick)
    const subjects = await openSubjects(servers)
    try {
      const random = randomNumbers()
      const nextKey = (): string => keyOf(random(KEYS))
      const cases = subjects.map((subject): Case => ({ subject, limiter: subject.limiter('live', AMPLE) }))
      for (const { subject, limiter } of cases) {
        await fillKeys(subject.database.uri, [
          {
            name: 'expired',
            keys: expired,
            events: 1,
            hits: 1,
            windowSeconds: WINDOW_SECONDS,
            oldestSeconds: EXPIRED_SECONDS,
            newestSeconds: EXPIRED_SECONDS,
          },
        ])
        await timeCallers(limiter, nextKey, CALLERS, WARM_UP_MS)
      }
      step('filled')
      const measure = async ({ subject, limiter }: Case): Promise<Round> => {
        const quiet = await timeCallers(limiter, nextKey, CALLERS, millis)
        const before = await countKeys(subject)
        const stop = await startSweep(subject)
        const sweeping = await timeCallers(limiter, nextKey, CALLERS, millis)
        await stop()
        const keysPerSecond = (before - (await countKeys(subject))) / (millis / 1000)
        if (keysPerSecond === 0) throw new Error('the sweep removed nothing')
        await sleep(REST_MS)
        return { quiet, sweeping, keysPerSecond }
      }
      const results = await takeTurns(cases, rounds, measure, (round) => step(`round ${round}`))
      const { table, plot, targets, raw } = describeTails(
        {
          id: 'sweep',
          title: 'Decision time while a sweep runs',
          disturbance: 'while sweeping',
          atMost: 2,
          columns: ['keys swept per second'],
          note: `${CALLERS} callers on ${KEYS.toLocaleString('en')} keys; medians over ${rounds} rounds of ${millis / 1000} s each, and the lowest and the highest round.`,
        },
        results.map(
          (each, i): Disturbed => ({
            name: cases[i]?.subject.server ?? '',
            quiet: each.map(({ quiet }) => quiet),
            disturbed: each.map(({ sweeping }) => sweeping),
            cells: [number(spreadOf(each.map(({ keysPerSecond }) => keysPerSecond)).median)],
          }),
        ),
      )
      return {
        id: growthSweep.id,
        title: growthSweep.title,
        text: `The tables hold ${(2 * expired).toLocaleString('en')} expired rows: ${expired.toLocaleString('en')} keys that nobody uses any more, each with one event. ${TEXT}`,
        tables: [table],
        plots: [plot],
        targets,
        raw,
      }
    } finally {
      for (const subject of subjects) await subject.end()
    }
  },
}

const TEXT = `Decisions are measured in quiet and while another store of the same process sweeps, in turn; a round's sweep is
broken off at its end and the next one goes on.`

/** Begins a sweep by a store of its own; gives what breaks it off. */
async function startSweep({ database }: Subject): Promise<() => Promise<void>> {
  // The sweep that was broken off still holds its lease.
  await database.query('UPDATE rate_limit_schema SET sweep_until = 0')
  const store = new MysqlStore({ uri: database.uri, sweepSeconds: false })
  await store.install()
  const swept = store.sweep().catch((error) => {
    if (!(error instanceof StoreError && error.code === 'ERR_STORE_CLOSED')) throw error
  })
  return async () => {
    await store.close()
    await swept
  }
}

async function countKeys({ database }: Subject): Promise<number> {
  const [row] = await database.query('SELECT COUNT(*) AS number FROM rate_keys')
  return Number(row?.number)
}
