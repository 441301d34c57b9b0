import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestDatabase } from '../../__tests__/servers/test-database.js'
import type { MemoryAnswer, MemoryQuestion } from '../growth/memory-process.js'
import { startChild } from '../processes/start-child.js'
import type { Context, Findings, Section } from '../section.js'

/** So many keys fill what every limiter and store keeps of its own, and warm its code, before anything is counted. */
const WARMING_KEYS = 1000

interface Plan {
  readonly keys: number
  readonly steps: number
}

const planOf = (quick: boolean): Plan => (quick ? { keys: 40_000, steps: 2 } : { keys: 1_000_000, steps: 10 })

interface Grown {
  readonly store: string
  /** After so many keys, what the process has more than before the first, in bytes. */
  readonly points: readonly (readonly [keys: number, heap: number, resident: number])[]
}

/** What a process holds of keys that it has hit once. */
export const growthMemory: Section = {
  id: 'growth-memory',
  title: 'Growth: memory of a process',
  steps: (quick) => 2 * planOf(quick).steps,
  async run({ quick, servers, step }: Context): Promise<Findings> {
    const plan = planOf(quick)
    const database = await createTestDatabase(servers.mysql)
    const folder = await mkdtemp(join(tmpdir(), 'rate-limit-'))
    try {
      const measure = async (
        store: string,
        place: { uri: string } | { filename: string },
      ): Promise<Grown> => {
        const child = startChild<MemoryQuestion, MemoryAnswer>(
          new URL('../growth/memory-process.ts', import.meta.url),
          ['--expose-gc'],
        )
        try {
          await child.ask({ store: place })
          const first = await child.ask({ keys: WARMING_KEYS })
          const points: Grown['points'][number][] = [[0, 0, 0]]
          for (let i = 1; i <= plan.steps; i += 1) {
            const { heap, resident } = await child.ask({ keys: plan.keys / plan.steps })
            points.push([(i * plan.keys) / plan.steps, heap - first.heap, resident - first.resident])
            step(`${store}, ${points.at(-1)?.[0].toLocaleString('en')} keys`)
          }
          return { store, points }
        } finally {
          await child.end()
        }
      }
      // Nothing is timed, so both may run at once.
      const grown = await Promise.all([
        measure('MySQL', { uri: database.uri }),
        measure('SQLite', { filename: join(folder, 'limits.sqlite') }),
      ])
      const keys = plan.keys.toLocaleString('en')
      return {
        id: growthMemory.id,
        title: growthMemory.title,
        text: TEXT,
        tables: [
          {
            title: `What ${keys} distinct keys add to a process`,
            columns: ['store', 'heap', 'whole process'],
            rows: grown.map(({ store, points }) => {
              const [, heap, resident] = points.at(-1) ?? [0, 0, 0]
              return [store, megabytes(heap), megabytes(resident)]
            }),
            note: `Against the same process after its first ${WARMING_KEYS.toLocaleString('en')} keys, each time after a collection of garbage. What is beyond the heap is mostly room that the runtime has taken for garbage and keeps.`,
          },
        ],
        plots: [
          {
            id: 'memory',
            title: 'Memory against distinct keys hit by one process',
            xLabel: 'distinct keys',
            yLabel: 'megabytes more than at the start',
            series: grown.flatMap(({ store, points }) => [
              { name: `${store}, heap`, points: points.map(([x, heap]) => [x, heap / 1e6] as const) },
              {
                name: `${store}, whole process`,
                points: points.map(([x, , all]) => [x, all / 1e6] as const),
              },
            ]),
          },
        ],
        targets: grown.map(({ store, points }) => ({
          what: `${store}: megabytes that ${keys} distinct keys add to a process`,
          value: (points.at(-1)?.[2] ?? Number.NaN) / 1e6,
          atMost: 100,
        })),
        raw: grown,
      }
    } finally {
      await database.drop()
      await rm(folder, { recursive: true, force: true })
    }
  },
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`

const TEXT = `One process hits a new key with every hit, 500 at a time. What a store keeps of a key is in the database; a process
remembers a bounded number of windows and of denials, whatever the number of its keys.`
