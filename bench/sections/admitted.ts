import {
  erlRedis,
  fixedMysql,
  handMysql,
  hitlimitOnMysql,
  rlfMysql,
  rlfMysqlPool100,
  rlfRedis,
  slidingMysql,
} from '../contenders/line-up.js'
import { type Comparison, compare, type Entry } from '../load/compare.js'
import { entryBars, entryTable, RATE, rawEntries } from '../load/entry-table.js'
import { entryOf, fasterOf, rateRatio } from '../load/ratios.js'
import type { Section, Target } from '../section.js'

const EVERYONE = [
  slidingMysql,
  fixedMysql,
  rlfMysql,
  rlfMysqlPool100,
  hitlimitOnMysql,
  handMysql,
  rlfRedis,
  erlRedis,
]
const STEADY = [slidingMysql, fixedMysql, rlfMysql, handMysql, rlfRedis, erlRedis]
/** Those with a target, and what people write by hand. */
const QUICK = [slidingMysql, rlfMysql, handMysql, rlfRedis, erlRedis]

const works = [
  {
    id: 'admitted-64',
    label: '64 callers, 1,000 keys',
    callers: 64,
    keys: 1000,
    flexible: 6,
    redis: 0.35,
  },
  {
    id: 'admitted-256',
    label: '256 callers, 1,000 keys',
    callers: 256,
    keys: 1000,
    flexible: 11,
    redis: 0.5,
  },
  {
    id: 'admitted-hot',
    label: '256 callers, one key',
    callers: 256,
    keys: 1,
    prefix: 'hot',
    flexible: 120,
    redis: 2.5,
  },
]
const steadyWork = {
  label: '64 callers, 1,000 keys, a window of 2 seconds',
  callers: 64,
  keys: 1000,
}

const STEADY_ROUNDS = 4

const roundsOf = (quick: boolean): number => (quick ? 2 : 4)

/** Hits that are all admitted, on MySQL, with Redis beside it. */
export const admitted: Section = {
  id: 'admitted',
  title: 'Admitted hits: MySQL, with Redis beside it',
  steps: (quick) => works.length * roundsOf(quick) + (quick ? 0 : STEADY_ROUNDS),
  async run(context) {
    const { quick } = context
    const comparison: Comparison = {
      contenders: quick ? QUICK : EVERYONE,
      // Above all that comes: everything is admitted.
      rule: { limit: 1_000_000_000, windowSeconds: 60 },
      rounds: roundsOf(quick),
      millis: quick ? 150 : 400,
      warmUpMillis: quick ? 100 : 400,
    }
    const found = await compare(context, comparison, works)
    const tables = works.map(({ label }, i) => entryTable(label, found[i] ?? [], RATE))
    const plots = works.map(({ id, label }, i) =>
      entryBars(id, `All admitted: ${label}`, found[i] ?? [], RATE),
    )
    const targets = works.flatMap((work, i) => targetsOf(work, found[i] ?? []))
    const raw = Object.fromEntries(works.map(({ label }, i) => [label, rawEntries(found[i] ?? [])]))
    if (!quick) {
      const rule = { ...comparison.rule, windowSeconds: 2 }
      const steadily = { ...comparison, rule, contenders: STEADY, rounds: STEADY_ROUNDS }
      const [steady = []] = await compare(context, steadily, [steadyWork])
      tables.push(entryTable(steadyWork.label, steady, RATE, STEADY_NOTE))
      raw[steadyWork.label] = rawEntries(steady)
    }
    return { id: this.id, title: this.title, text: TEXT, tables, plots, targets, raw }
  },
}

const TEXT = `Closed-loop callers in one process: each waits for its answer before it hits again. The limit is above
all that comes, so every hit is admitted and written. Each contender has a database of its own on the same server and
meets the same keys in the same order; a round gives each of them a turn, in another order than the round before. We
decide on one connection; rate-limiter-flexible, hitlimit and the statements written by hand have a pool of 10. Peers
are called at their store, without the middleware that people put around it.`

const STEADY_NOTE = 'Every hit leaves its window within the measurement, so its row is deleted in it too.'

function targetsOf({ label, flexible, redis }: (typeof works)[number], entries: readonly Entry[]): Target[] {
  const us = entryOf(entries, slidingMysql)
  const fastest = fasterOf(entryOf(entries, rlfRedis), entryOf(entries, erlRedis))
  return [
    {
      what: `${label}: decisions/s against rate-limiter-flexible MySQL`,
      value: rateRatio(us, entryOf(entries, rlfMysql)),
      atLeast: flexible,
    },
    {
      what: `${label}: decisions/s against the faster Redis peer (${fastest.contender.name})`,
      value: rateRatio(us, fastest),
      atLeast: redis,
    },
  ]
}
