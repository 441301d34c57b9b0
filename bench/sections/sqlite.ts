import { fixedSqlite, hitlimitOnSqlite, rlfSqlite, slidingSqlite } from '../contenders/line-up.js'
import { compare } from '../load/compare.js'
import { entryBars, entryTable, RATE, rawEntries } from '../load/entry-table.js'
import { entryOf, rateRatio } from '../load/ratios.js'
import type { Section } from '../section.js'

const CONTENDERS = [fixedSqlite, slidingSqlite, hitlimitOnSqlite, rlfSqlite]

const roundsOf = (quick: boolean): number => (quick ? 2 : 5)

/** Admitted hits on SQLite files. */
export const sqlite: Section = {
  id: 'sqlite',
  title: 'SQLite',
  steps: (quick) => 2 * roundsOf(quick),
  async run(context) {
    const { quick } = context
    const comparison = {
      contenders: CONTENDERS,
      rule: { limit: 1_000_000_000, windowSeconds: 60 },
      rounds: roundsOf(quick),
      millis: quick ? 150 : 350,
      warmUpMillis: quick ? 100 : 300,
    }
    const [many = [], one = []] = await compare(context, comparison, [
      { label: '64 callers', callers: 64, keys: 1000 },
      { label: 'one caller', callers: 1, keys: 1000 },
    ])
    return {
      id: this.id,
      title: this.title,
      text: TEXT,
      tables: [
        entryTable('64 callers, 1,000 keys', many, RATE),
        entryTable('One caller, 1,000 keys', one, RATE),
      ],
      plots: [entryBars('sqlite-64', 'SQLite: 64 callers, 1,000 keys', many, RATE)],
      targets: [
        {
          what: 'SQLite, 64 callers: decisions/s against hitlimit, fixed windows both',
          value: rateRatio(entryOf(many, fixedSqlite), entryOf(many, hitlimitOnSqlite)),
          atLeast: 1.5,
        },
        {
          what: 'SQLite, 64 callers: decisions/s against rate-limiter-flexible, fixed windows both',
          value: rateRatio(entryOf(many, fixedSqlite), entryOf(many, rlfSqlite)),
          atLeast: 3,
        },
        {
          what: 'SQLite, one caller: decisions/s against hitlimit, fixed windows both',
          value: rateRatio(entryOf(one, fixedSqlite), entryOf(one, hitlimitOnSqlite)),
          atLeast: 0.7,
        },
      ],
      raw: { many: rawEntries(many), one: rawEntries(one) },
    }
  },
}

const TEXT = `A file for each, all with WAL and synchronous NORMAL, all through better-sqlite3 unless this Node.js has
\`node:sqlite\`, which we then use. Like is compared with like: our fixed window with theirs; our sliding window, which
writes a row more, stands beside them.`
