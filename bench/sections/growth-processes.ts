import type { HitAnswer, HitQuestion } from '../growth/hit-process.js'
import { openSubjects, type Subject } from '../growth/subject.js'
import { ratioOf, spreadOf } from '../load/spread.js'
import { takeTurns } from '../load/take-turns.js'
import { type Child, startChild } from '../processes/start-child.js'
import { number } from '../report/number.js'
import type { Context, Findings, Section } from '../section.js'

const CALLERS = 64
const KEYS = 1000
/** So that every key is there, and the code is warm. */
const WARM_UP_MS = 500

interface Plan {
  /** How many processes: each of these counts. */
  readonly counts: readonly number[]
  readonly rounds: number
  readonly millis: number
}

const planOf = (quick: boolean): Plan =>
  quick ? { counts: [1, 4], rounds: 3, millis: 300 } : { counts: [1, 2, 3, 4], rounds: 5, millis: 600 }

type HitProcess = Child<HitQuestion, HitAnswer>

interface Case {
  readonly subject: Subject
  readonly count: number
}

/** What several processes on one database decide together. */
export const growthProcesses: Section = {
  id: 'growth-processes',
  title: 'Growth: processes',
  steps: (quick) => planOf(quick).rounds + 1,
  async run({ quick, servers, step }: Context): Promise<Findings> {
    const { counts, rounds, millis } = planOf(quick)
    const subjects = await openSubjects(servers)
    const processes = Array.from(
      { length: Math.max(...counts) },
      (): HitProcess => startChild(new URL('../growth/hit-process.ts', import.meta.url)),
    )
    try {
      const hitTogether = ({ subject, count }: Case, length: number): Promise<HitAnswer[]> =>
        Promise.all(
          processes.slice(0, count).map((each, i) =>
            each.ask({
              uri: subject.database.uri,
              seed: i + 1,
              keys: KEYS,
              callers: CALLERS,
              millis: length,
            }),
          ),
        )
      for (const subject of subjects) await hitTogether({ subject, count: processes.length }, WARM_UP_MS)
      step('warm')
      const cases = subjects.flatMap((subject) => counts.map((count): Case => ({ subject, count })))
      const measure = async (each: Case): Promise<number> => {
        const begun = performance.now()
        const hits = await hitTogether(each, millis)
        return hits.reduce((sum, of) => sum + of, 0) / ((performance.now() - begun) / 1000)
      }
      const turns = await takeTurns(cases, rounds, measure, (round) => step(`round ${round}`))
      const totals = subjects.map((subject) => ({
        server: subject.server,
        byCount: turns.filter((_, i) => cases[i]?.subject === subject),
      }))
      return {
        id: growthProcesses.id,
        title: growthProcesses.title,
        text: TEXT,
        tables: [
          {
            title: 'Decisions a second of all processes together',
            columns: ['processes:', ...counts.map(String)],
            rows: totals.map(({ server, byCount }) => [server, ...byCount.map(cell)]),
            note: `Medians over ${rounds} rounds of ${millis / 1000} s, and the slowest and fastest round.`,
          },
        ],
        plots: [
          {
            id: 'processes',
            title: 'Decisions a second against processes',
            xLabel: `processes, ${CALLERS} callers each`,
            yLabel: 'decisions a second, all together',
            series: totals.map(({ server, byCount }) => ({
              name: server,
              points: byCount.map((each, i) => [counts[i] ?? Number.NaN, spreadOf(each).median] as const),
            })),
          },
        ],
        targets: totals.flatMap(({ server, byCount }) => [
          {
            what: `${server}: decisions a second of ${counts.at(-1)} processes, to one`,
            value: ratioOf(byCount.at(-1) ?? [], byCount[0] ?? []),
            atLeast: 1,
          },
          ...(counts.length === 2
            ? []
            : [
                {
                  what: `${server}: decisions a second of a process more, the worst step of 1 to ${counts.at(-1)}`,
                  value: worstStep(byCount),
                  atLeast: 1,
                },
              ]),
        ]),
        raw: { counts, totals },
      }
    } finally {
      await Promise.all(processes.map((each) => each.end()))
      for (const subject of subjects) await subject.end()
    }
  },
}

/** The total against the one with a process less; of these the smallest. */
const worstStep = (byCount: readonly (readonly number[])[]): number =>
  Math.min(...byCount.slice(1).map((totals, i) => ratioOf(totals, byCount[i] ?? [])))

function cell(totals: readonly number[]): string {
  const { median, lowest, highest } = spreadOf(totals)
  return `${number(median)} (${number(lowest)}–${number(highest)})`
}

const TEXT = `One to four processes of ${CALLERS} callers each hit the same ${KEYS.toLocaleString('en')} keys at random, all hits admitted.
Processes, server and this benchmark share the cores of the machine, so more processes can only help until those are
busy; what is wanted is that they never harm, although they wait for each other's keys.`
