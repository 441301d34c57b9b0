import type { Limiter } from 'express-sql-rate-limit'
import { curveOf, describeCurves } from '../growth/curves.js'
import { fillKeys, keyOf } from '../growth/fill-keys.js'
import { AMPLE, openSubjects, type Subject, WINDOW_SECONDS } from '../growth/subject.js'
import { timeHits } from '../growth/time-hits.js'
import { spreadOf } from '../load/spread.js'
import { takeTurns } from '../load/take-turns.js'
import type { Context, Findings, Section } from '../section.js'

const NAME = 'rows'
/** Hits that come before those that are timed, because another case was measured last. */
const UNTIMED = 2

interface Plan {
  readonly sizes: readonly number[]
  readonly rounds: number
  readonly hits: number
}

const planOf = (quick: boolean): Plan =>
  quick
    ? { sizes: [10, 1000, 100_000], rounds: 4, hits: 8 }
    : { sizes: [10, 100, 1000, 10_000, 100_000], rounds: 9, hits: 20 }

interface Case {
  readonly subject: Subject
  readonly size: number
  readonly key: string
  /** Whether the start of its window is forgotten before every hit. */
  readonly lookUp: boolean
}

/** How long a decision takes on a key with few and with many events in its window. */
export const growthRows: Section = {
  id: 'growth-rows',
  title: 'Growth: rows in the window',
  steps: (quick) => planOf(quick).rounds + 1,
  async run({ quick, servers, step }: Context): Promise<Findings> {
    const { sizes, rounds, hits } = planOf(quick)
    const subjects = await openSubjects(servers)
    try {
      for (const { database } of subjects) {
        await fillKeys(
          database.uri,
          sizes.map((events, first) => ({
            name: NAME,
            keys: 1,
            first,
            events,
            hits: 1,
            windowSeconds: WINDOW_SECONDS,
            oldestSeconds: WINDOW_SECONDS / 2,
            newestSeconds: 1,
          })),
        )
      }
      step('filled')
      const limiters = new Map(subjects.map((subject) => [subject, subject.limiter(NAME, AMPLE)]))
      for (const limiter of limiters.values()) {
        for (const [i, size] of sizes.entries()) {
          const { used } = await limiter.peek(keyOf(i))
          if (used !== size) throw new Error(`Expected ${size} rows in the window, the store counts ${used}`)
        }
      }
      const cases = subjects.flatMap((subject) =>
        [false, true].flatMap((lookUp) =>
          sizes.map((size, i): Case => ({ subject, size, key: keyOf(i), lookUp })),
        ),
      )
      const measure = async ({ subject, key, lookUp }: Case): Promise<number> => {
        const times: number[] = []
        for (let i = -UNTIMED; i < hits; i += 1) {
          if (lookUp) await forgetStart(subject, key)
          const [millis = Number.NaN] = await timeHits(limiters.get(subject) as Limiter, [key])
          if (i >= 0) times.push(millis)
        }
        return spreadOf(times).median
      }
      const medians = await takeTurns(cases, rounds, measure, (round) => step(`round ${round}`))
      const curves = subjects.flatMap((subject) =>
        [false, true].map((lookUp) =>
          curveOf(
            `${subject.server}, start ${lookUp ? 'looked up' : 'remembered'}`,
            cases,
            medians,
            (each) => each.subject === subject && each.lookUp === lookUp,
            (millis) => millis,
          ),
        ),
      )
      const { table, plot, targets, raw } = describeCurves(
        {
          id: 'rows-in-window',
          title: 'Decision time against rows in the window',
          xLabel: 'rows in the window',
          atMost: 1.3,
          note: `Medians over ${rounds} rounds of ${hits} hits each, and the fastest and slowest round.`,
        },
        curves,
      )
      return {
        id: growthRows.id,
        title: growthRows.title,
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

const TEXT = `One caller hits keys that have from 10 to 100,000 events in a window of an hour, each hit a transaction of its own
and admitted. As long as the start of the window is remembered, no event is read. The second curve of each server is the
other case: before every hit the key is changed as if by another process that gave a hit back, so that the start of the
window must be looked up among the events, in one more round trip. The events were written by SQL, and the store was
asked whether it counts them all.`

/** What a refund by another process leaves of the key's row: neither the row nor this process knows the start now. */
async function forgetStart({ database }: Subject, key: string): Promise<void> {
  await database.query(
    'UPDATE rate_keys SET memo_window = 0, memo_ts = 0, log_version = log_version + 1 WHERE rkey = ?',
    [Buffer.from(`${NAME}:${key}`)],
  )
}
