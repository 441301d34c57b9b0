import type { Limiter } from 'express-sql-rate-limit'
import { type Curve, curveOf, describeCurves } from '../growth/curves.js'
import { fillKeys, keyOf } from '../growth/fill-keys.js'
import { randomNumbers } from '../growth/random.js'
import { AMPLE, openSubjects, type Subject, WINDOW_SECONDS } from '../growth/subject.js'
import { admittedHit, timeHits } from '../growth/time-hits.js'
import { drive } from '../load/drive.js'
import { spreadOf } from '../load/spread.js'
import { takeTurns } from '../load/take-turns.js'
import type { Context, Findings, Section, Servers } from '../section.js'

const NAME = 'keys'
/** Hits that come before those that are timed, because another case was measured last. */
const UNTIMED = 2
const CALLERS = 64

interface Plan {
  readonly sizes: readonly number[]
  readonly rounds: number
  readonly hits: number
  /** How long 64 callers hit. */
  readonly millis: number
}

const planOf = (quick: boolean): Plan =>
  quick
    ? { sizes: [1000, 100_000], rounds: 4, hits: 10, millis: 200 }
    : { sizes: [1000, 10_000, 100_000, 1_000_000], rounds: 8, hits: 25, millis: 400 }

interface Case {
  readonly subject: Subject
  readonly size: number
  readonly limiter: Limiter
}

interface Times {
  /** Of one caller. */
  readonly alone: number
  /** Of 64 callers: the time that passes for each decision of them together. */
  readonly together: number
}

/** How long a decision takes in tables of few and of many keys. */
export const growthKeys: Section = {
  id: 'growth-keys',
  title: 'Growth: keys in the table',
  steps: (quick) => planOf(quick).rounds + planOf(quick).sizes.length,
  async run({ quick, servers, step }: Context): Promise<Findings> {
    const { sizes, rounds, hits, millis } = planOf(quick)
    const cases: Case[] = []
    try {
      for (const size of sizes) {
        cases.push(...(await openTables(servers, size)))
        step(`${size.toLocaleString('en')} keys`)
      }
      const random = randomNumbers()
      const measure = async ({ limiter, size }: Case): Promise<Times> => {
        const nextKey = (): string => keyOf(random(size))
        const alone = await timeHits(limiter, Array.from({ length: UNTIMED + hits }, nextKey))
        const { perSecond, error } = await drive(admittedHit(limiter), { callers: CALLERS, nextKey, millis })
        if (error !== undefined) throw new Error(error)
        return { alone: spreadOf(alone.slice(UNTIMED)).median, together: 1000 / perSecond }
      }
      const times = await takeTurns(cases, rounds, measure, (round) => step(`round ${round}`))
      const curvesOf = (kind: keyof Times): Curve[] =>
        ['MySQL', 'MariaDB'].map((server) =>
          curveOf(
            `${server}, ${kind === 'alone' ? 'one caller' : `${CALLERS} callers`}`,
            cases,
            times,
            ({ subject }) => subject.server === server,
            (turn) => turn[kind],
          ),
        )
      const note = `Medians over ${rounds} rounds, and the fastest and slowest round.`
      const xLabel = 'keys in the table'
      const alone = describeCurves(
        { id: 'keys-in-table', title: 'Decision time against keys in the table', xLabel, atMost: 1.3, note },
        curvesOf('alone'),
      )
      const together = describeCurves(
        {
          id: 'keys-in-table-64-callers',
          title: 'Time per decision of 64 callers against keys in the table',
          xLabel,
          atMost: 1.3,
          note,
        },
        curvesOf('together'),
      )
      return {
        id: growthKeys.id,
        title: growthKeys.title,
        text: TEXT,
        tables: [alone.table, together.table],
        plots: [alone.plot, together.plot],
        targets: [...alone.targets, ...together.targets],
        raw: { alone: alone.raw, together: together.raw },
      }
    } finally {
      for (const { subject } of cases) await subject.end()
    }
  },
}

/** Tables of one size on each server. */
async function openTables(servers: Servers, keys: number): Promise<Case[]> {
  const subjects = await openSubjects(servers)
  return Promise.all(
    subjects.map(async (subject) => {
      await fillKeys(subject.database.uri, [
        {
          name: NAME,
          keys,
          events: 1,
          hits: 1,
          windowSeconds: WINDOW_SECONDS,
          oldestSeconds: 2,
          newestSeconds: 2,
        },
      ])
      return { subject, size: keys, limiter: subject.limiter(NAME, AMPLE) }
    }),
  )
}

const TEXT = `Tables of a thousand to a million keys, each with an event in its window, one database for each size. Hits go to
random keys of the whole table: by one caller, each hit a transaction of its own, and by 64 callers, whose hits share
transactions. The servers have a buffer pool of 256 MB, which the larger tables do not leave much of.`
