import { lease100Mysql, lease1000Mysql, rlfRedis, slidingMysql } from '../contenders/line-up.js'
import { compare } from '../load/compare.js'
import { entryBars, entryTable, RATE, rawEntries } from '../load/entry-table.js'
import { entryOf, rateRatio } from '../load/ratios.js'
import type { Section } from '../section.js'

const CONTENDERS = [slidingMysql, lease100Mysql, lease1000Mysql, rlfRedis]
const works = [
  { id: 'lease-256', label: '256 callers, one key', callers: 256, keys: 1, prefix: 'hot' },
  { id: 'lease-1', label: 'one caller, one key', callers: 1, keys: 1, prefix: 'hot' },
]

const roundsOf = (quick: boolean): number => (quick ? 2 : 3)

/** One hot key, all admitted, with and without leases. */
export const lease: Section = {
  id: 'lease',
  title: 'Leases of one hot key',
  steps: (quick) => works.length * roundsOf(quick),
  async run(context) {
    const { quick } = context
    const comparison = {
      contenders: CONTENDERS,
      rule: { limit: 1_000_000_000, windowSeconds: 60 },
      rounds: roundsOf(quick),
      millis: quick ? 150 : 400,
      warmUpMillis: quick ? 100 : 400,
    }
    const found = await compare(context, comparison, works)
    return {
      id: this.id,
      title: this.title,
      text: TEXT,
      tables: works.map(({ label }, i) => entryTable(label, found[i] ?? [], RATE)),
      plots: works.map(({ id, label }, i) => entryBars(id, `All admitted: ${label}`, found[i] ?? [], RATE)),
      targets: works.map(({ label }, i) => ({
        what: `${label}: decisions/s with a lease of 1,000 against none`,
        value: rateRatio(entryOf(found[i] ?? [], lease1000Mysql), entryOf(found[i] ?? [], slidingMysql)),
        atLeast: 2,
      })),
      raw: Object.fromEntries(works.map(({ label }, i) => [label, rawEntries(found[i] ?? [])])),
    }
  },
}

const TEXT = `With \`lease: n\` a process takes n units of the key at a time, and asks the database about one of n hits.
The limit is never exceeded, but hits may be refused early: here nothing comes near it. On the cold key, whose limit of
100 allows leases of 10, fewer than 100 may be admitted.`
