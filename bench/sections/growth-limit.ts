import type { Limiter } from 'express-sql-rate-limit'
import { curveOf, describeCurves } from '../growth/curves.js'
import { fillKeys, keyOf } from '../growth/fill-keys.js'
import { openSubjects, type Subject, WINDOW_SECONDS } from '../growth/subject.js'
import { timeHits } from '../growth/time-hits.js'
import { spreadOf } from '../load/spread.js'
import { takeTurns } from '../load/take-turns.js'
import type { Context, Findings, Section } from '../section.js'

/** A limit, and the events by which a key has used all of it but one: 500 hits are the most that one event holds. */
const LIMITS = [
  { limit: 5, events: 4, hits: 1 },
  { limit: 101, events: 100, hits: 1 },
  { limit: 10_001, events: 1000, hits: 10 },
  { limit: 1_000_001, events: 2000, hits: 500 },
]

interface Plan {
  readonly rounds: number
  /** Keys that each round takes of each limit. */
  readonly keys: number
}

const planOf = (quick: boolean): Plan => (quick ? { rounds: 4, keys: 8 } : { rounds: 9, keys: 20 })

/** Keys of each round that are hit before the ones that are timed, because another case was measured last. */
const UNTIMED = 2

interface Case {
  readonly subject: Subject
  /** The limit. */
  readonly size: number
  readonly limiter: Limiter
  /** The first key that was not hit yet. */
  next: number
}

interface Times {
  readonly admitted: number
  readonly denied: number
}

/** How long a decision takes under small and under large limits, on keys that have one hit left. */
export const growthLimit: Section = {
  id: 'growth-limit',
  title: 'Growth: the limit',
  steps: (quick) => planOf(quick).rounds + 1,
  async run({ quick, servers, step }: Context): Promise<Findings> {
    const { rounds, keys } = planOf(quick)
    const subjects = await openSubjects(servers)
    try {
      for (const { database } of subjects) {
        await fillKeys(
          database.uri,
          LIMITS.map(({ limit, events, hits }) => ({
            name: nameOf(limit),
            keys: rounds * (keys + UNTIMED),
            events,
            hits,
            windowSeconds: WINDOW_SECONDS,
            oldestSeconds: WINDOW_SECONDS / 2,
            newestSeconds: 1,
          })),
        )
      }
      step('filled')
      const cases = subjects.flatMap((subject) =>
        LIMITS.map(
          ({ limit }): Case => ({
            subject,
            size: limit,
            limiter: subject.limiter(nameOf(limit), limit),
            next: 0,
          }),
        ),
      )
      const measure = async (each: Case): Promise<Times> => {
        const chosen = Array.from({ length: keys + UNTIMED }, (_, i) => keyOf(each.next + i))
        each.next += chosen.length
        const admitted = await timeHits(each.limiter, chosen)
        const denied = await timeHits(each.limiter, chosen, 'denied')
        return {
          admitted: spreadOf(admitted.slice(UNTIMED)).median,
          denied: spreadOf(denied.slice(UNTIMED)).median,
        }
      }
      const times = await takeTurns(cases, rounds, measure, (round) => step(`round ${round}`))
      const curves = subjects.flatMap((subject) =>
        (['admitted', 'denied'] as const).map((outcome) =>
          curveOf(
            `${subject.server}, ${outcome}`,
            cases,
            times,
            (each) => each.subject === subject,
            (turn) => turn[outcome],
          ),
        ),
      )
      const { table, plot, targets, raw } = describeCurves(
        {
          id: 'limit',
          title: 'Decision time against the limit',
          xLabel: 'limit',
          atMost: 1.1,
          note: `Medians over ${rounds} rounds of ${keys} keys each, and the fastest and slowest round.`,
        },
        curves,
      )
      return {
        id: growthLimit.id,
        title: growthLimit.title,
        text: TEXT,
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

const nameOf = (limit: number): string => `limit${limit}`

const TEXT = `Keys have used all of their limit but one: 4 of 5, up to a million of 1,000,001. One caller hits each of them twice:
the first hit is admitted, the second denied by the database. Every hit goes to a key that this process has not seen
before, so that neither has anything to remember. Exactly one hit of each key is admitted, at every limit, else the run
would end with an error.`
