import type { Limiter } from 'express-sql-rate-limit'
import { createConnection } from 'mysql2/promise'
import { AMPLE, openSubjects, type Subject } from '../growth/subject.js'
import { type Disturbed, describeTails } from '../growth/tails.js'
import { admittedHit, timeCallers } from '../growth/time-hits.js'
import { drive } from '../load/drive.js'
import { takeTurns } from '../load/take-turns.js'
import type { Context, Findings, Section } from '../section.js'

/** Short, so that the key's events leave and are deleted while the snapshot that still sees them is open. */
const WINDOW_SECONDS = 1
const CALLERS = 16

interface Plan {
  /** Hits on the one key while the snapshot is open. */
  readonly churn: number
  readonly rounds: number
  readonly millis: number
}

const planOf = (quick: boolean): Plan =>
  quick ? { churn: 6000, rounds: 2, millis: 250 } : { churn: 200_000, rounds: 3, millis: 600 }

interface Case {
  readonly subject: Subject
  readonly limiter: Limiter
}

/** What an old snapshot, as of a backup or a forgotten transaction, does to a key whose events come and go. */
export const growthSnapshot: Section = {
  id: 'growth-snapshot',
  title: 'Growth: while an old snapshot is open',
  steps: (quick) => 2 * planOf(quick).rounds + 1,
  async run({ quick, servers, step }: Context): Promise<Findings> {
    const { churn, rounds, millis } = planOf(quick)
    const subjects = await openSubjects(servers)
    const snapshots: (() => void)[] = []
    try {
      const cases = subjects.map(
        (subject): Case => ({ subject, limiter: subject.limiter('churn', AMPLE, WINDOW_SECONDS) }),
      )
      const nextKey = (): string => 'hot'
      const hitFor = ({ limiter }: Case): Promise<readonly number[]> =>
        timeCallers(limiter, nextKey, CALLERS, millis)
      for (const each of cases) await hitFor(each)
      const before = await takeTurns(cases, rounds, hitFor, (round) => step(`before, round ${round}`))
      for (const { subject } of cases) snapshots.push(await openSnapshot(subject))
      // Not timed, so the servers may do it at once.
      await Promise.all(
        cases.map(({ limiter }) => drive(admittedHit(limiter), { callers: CALLERS, nextKey, hits: churn })),
      )
      step(`${churn.toLocaleString('en')} hits`)
      const after = await takeTurns(cases, rounds, hitFor, (round) => step(`after, round ${round}`))
      const { table, plot, targets, raw } = describeTails(
        {
          id: 'old-snapshot',
          title: `Decision time after ${churn.toLocaleString('en')} hits on one key under an old snapshot`,
          disturbance: 'under the snapshot',
          atMost: 3,
          note: `${CALLERS} callers on the one key; medians over ${rounds} rounds of ${millis / 1000} s each, and the lowest and the highest round.`,
        },
        cases.map(
          ({ subject }, i): Disturbed => ({
            name: subject.server,
            quiet: before[i] ?? [],
            disturbed: after[i] ?? [],
          }),
        ),
      )
      return {
        id: growthSnapshot.id,
        title: growthSnapshot.title,
        text: TEXT,
        tables: [table],
        plots: [plot],
        targets,
        raw,
      }
    } finally {
      for (const close of snapshots) close()
      for (const subject of subjects) await subject.end()
    }
  },
}

const TEXT = `InnoDB cannot purge what a snapshot still sees, so deleted events stay in the index and old versions of the key's row
pile up behind it. All hits go to one key with a window of ${WINDOW_SECONDS} s, so that its events are written, leave the window and
are deleted all the time. It is measured before, and again while a transaction with a consistent snapshot at REPEATABLE
READ has been open during all the hits.`

/** Opens a snapshot of both tables; gives what ends it. */
async function openSnapshot({ database }: Subject): Promise<() => void> {
  const connection = await createConnection(database.uri)
  await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ')
  await connection.query('START TRANSACTION WITH CONSISTENT SNAPSHOT')
  await connection.query('SELECT (SELECT COUNT(*) FROM rate_keys), (SELECT COUNT(*) FROM rate_events)')
  return () => connection.destroy()
}
