import {
  fixedMariadb,
  handMariadb,
  hitlimitOnMariadb,
  rlfMariadb,
  slidingMariadb,
} from '../contenders/line-up.js'
import { compare } from '../load/compare.js'
import { entryTable, RATE, rawEntries } from '../load/entry-table.js'
import type { Section } from '../section.js'

const CONTENDERS = [slidingMariadb, fixedMariadb, rlfMariadb, hitlimitOnMariadb, handMariadb]

const QUICK = [slidingMariadb, rlfMariadb, handMariadb]

const works = [
  { label: '64 callers, 1,000 keys', callers: 64, keys: 1000 },
  { label: '256 callers, 1,000 keys', callers: 256, keys: 1000 },
  { label: '256 callers, one key', callers: 256, keys: 1, prefix: 'hot' },
]

const roundsOf = (quick: boolean): number => (quick ? 2 : 3)
const worksOf = (quick: boolean) => (quick ? works.slice(0, 1) : works)

/** The same on MariaDB, whose commits cost something else: it writes no binary log by default. */
export const mariadb: Section = {
  id: 'mariadb',
  title: 'Admitted hits: MariaDB',
  steps: (quick) => worksOf(quick).length * roundsOf(quick),
  async run(context) {
    const { quick } = context
    const done = worksOf(quick)
    const found = await compare(
      context,
      {
        contenders: quick ? QUICK : CONTENDERS,
        rule: { limit: 1_000_000_000, windowSeconds: 60 },
        rounds: roundsOf(quick),
        millis: quick ? 150 : 400,
        warmUpMillis: quick ? 100 : 400,
      },
      done,
    )
    const tables = done.map(({ label }, i) => entryTable(label, found[i] ?? [], RATE))
    const raw = Object.fromEntries(done.map(({ label }, i) => [label, rawEntries(found[i] ?? [])]))
    return { id: this.id, title: this.title, text: TEXT, tables, plots: [], targets: [], raw }
  },
}

const TEXT = `The same work and the same contenders as on MySQL, on MariaDB, which writes no binary log by default: a commit
syncs one log instead of two.`
