import { erlMemory, fixedMemory, rlfMemory, slidingMemory } from '../contenders/line-up.js'
import { compare } from '../load/compare.js'
import { entryTable, RATE, rawEntries } from '../load/entry-table.js'
import type { Section } from '../section.js'

const roundsOf = (quick: boolean): number => (quick ? 2 : 4)

/** Admitted hits in the memory of one process. */
export const memory: Section = {
  id: 'memory',
  title: 'Memory',
  steps: roundsOf,
  async run(context) {
    const { quick } = context
    const comparison = {
      contenders: [fixedMemory, slidingMemory, rlfMemory, erlMemory],
      rule: { limit: 1_000_000_000, windowSeconds: 60 },
      rounds: roundsOf(quick),
      millis: quick ? 100 : 300,
      warmUpMillis: quick ? 100 : 300,
    }
    const [entries = []] = await compare(context, comparison, [
      { label: '64 callers', callers: 64, keys: 1000 },
    ])
    return {
      id: this.id,
      title: this.title,
      text: TEXT,
      tables: [entryTable('64 callers, 1,000 keys', entries, RATE)],
      plots: [],
      targets: [],
      raw: rawEntries(entries),
    }
  },
}

const TEXT = `For tests and small services. Here the peers add to a number in a map and return; we take the whole way of a
decision, the batch with its deadline, several limits, hooks and events, so that it is the same with every store.`
