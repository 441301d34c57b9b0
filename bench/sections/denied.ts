import {
  erlRedis,
  fixedMysql,
  handMysql,
  hitlimitOnMysql,
  rlfMysql,
  rlfMysqlBlock,
  rlfRedis,
  rlfRedisBlock,
  slidingMysql,
} from '../contenders/line-up.js'
import { hoursAway } from '../exactness/window-boundary.js'
import { compare } from '../load/compare.js'
import { denyMany, type ManyDenied } from '../load/deny-many.js'
import { entryBars, entryTable, RATE, rawEntries } from '../load/entry-table.js'
import { entryOf, fasterOf, rateRatio } from '../load/ratios.js'
import { number } from '../report/number.js'
import type { Plot, Section, Table } from '../section.js'

const CONTENDERS = [
  slidingMysql,
  fixedMysql,
  rlfMysql,
  rlfMysqlBlock,
  hitlimitOnMysql,
  handMysql,
  rlfRedis,
  rlfRedisBlock,
  erlRedis,
]
const QUICK = [slidingMysql, rlfMysql, rlfMysqlBlock, rlfRedis, erlRedis]
const LIMIT = 100
// The second and the third are above what we remember, 10,000 denials and 20,000 keys: from there on memory must not grow any more.
const STAGES = [10_000, 30_000, 60_000]
const QUICK_STAGES = [5000, 22_000, 32_000]
/** Fewer, as each of its keys costs more than the one before. */
const PEER_STAGES = [5000, 10_000, 20_000]

const roundsOf = (quick: boolean): number => (quick ? 2 : 4)

/** Hits over the limit: one key, and very many. */
export const denied: Section = {
  id: 'denied',
  title: 'Denied hits: MySQL, with Redis beside it',
  steps: (quick) => roundsOf(quick) + (quick ? QUICK_STAGES.length : STAGES.length + PEER_STAGES.length),
  async run(context) {
    const { quick } = context
    const comparison = {
      contenders: quick ? QUICK : CONTENDERS,
      rule: { limit: LIMIT, windowSeconds: hoursAway() },
      rounds: roundsOf(quick),
      millis: quick ? 150 : 350,
      warmUpMillis: quick ? 250 : 600,
    }
    const [hot = []] = await compare(context, comparison, [
      { label: 'one key over its limit', callers: 64, keys: 1 },
    ])
    const many = await denyMany(context, slidingMysql, quick ? QUICK_STAGES : STAGES)
    const peer = quick ? [] : await denyMany(context, rlfRedisBlock, PEER_STAGES)
    const us = entryOf(hot, slidingMysql)
    const fastest = fasterOf(entryOf(hot, rlfRedis), entryOf(hot, erlRedis))
    const [first, middle, last] = many as [ManyDenied, ManyDenied, ManyDenied]
    const note = `Admitted in this very work, of ${LIMIT}: ${hot.map((entry) => entry.admitted).join(', ')}, from the top.`
    return {
      id: this.id,
      title: this.title,
      text: TEXT,
      tables: [
        entryTable('64 callers, one key over its limit', hot, RATE, note),
        manyTable([...many, ...peer]),
      ],
      plots: [
        { ...entryBars('denied-hot', 'One key over its limit, 64 callers', hot, RATE), log: true },
        manyPlot([many, peer]),
      ],
      targets: [
        {
          what: 'one key over its limit: decisions/s against rate-limiter-flexible MySQL',
          value: rateRatio(us, entryOf(hot, rlfMysql)),
          atLeast: 1000,
        },
        {
          what: `one key over its limit: decisions/s against the faster Redis peer (${fastest.contender.name})`,
          value: rateRatio(us, fastest),
          atLeast: 25,
        },
        {
          what: `CPU of a key's first denial, with ${number(last.keys)} denied keys against ${number(first.keys)}`,
          value: last.denied.cpuMicros / first.denied.cpuMicros,
          atMost: 1.3,
        },
        {
          what: `heap held, with ${number(last.keys)} denied keys against ${number(middle.keys)}`,
          value: last.heldMegabytes / middle.heldMegabytes,
          atMost: 1.3,
        },
      ],
      raw: { hot: rawEntries(hot), many, peer },
    }
  },
}

const TEXT = `First one key of limit ${LIMIT} that has long reached it: what can be known without asking is answered from memory,
by us and, with \`inMemoryBlockOnConsumed\`, by rate-limiter-flexible. Then distinct keys, each of limit 1, admitted once and
then denied: our first denial of a key is decided by the store and then remembered, for a second at the most;
rate-limiter-flexible blocks a key in memory when it admits its last hit. What that costs must not grow with the keys, nor may
the memory: we remember 10,000 denials and 20,000 keys at the most, the block of rate-limiter-flexible has no bound. It is on Redis here, as what
is measured is this process.`

function manyTable(many: readonly ManyDenied[]): Table {
  return {
    title: 'Distinct keys, each admitted once and denied once',
    columns: [
      'contender',
      'keys',
      'admitting, µs/hit',
      'first denial, µs/hit',
      'denied again, µs/hit',
      'denied again, decisions/s',
      'heap held, MB',
    ],
    rows: many.map(({ contender, keys, admitted, denied, again, heldMegabytes }) => [
      contender,
      number(keys),
      ...[admitted, denied, again].map(({ cpuMicros }) => number(cpuMicros)),
      number(again.perSecond),
      number(heldMegabytes),
    ]),
    note: 'µs/hit: CPU time of this process a hit. Denied again: as many hits as keys, each of another key.',
  }
}

function manyPlot(groups: readonly (readonly ManyDenied[])[]): Plot {
  return {
    id: 'denied-keys',
    title: 'CPU of a key that is admitted once and denied once',
    xLabel: 'keys denied so far',
    yLabel: 'µs a key',
    series: groups
      .filter((group) => group.length > 0)
      .map((group) => ({
        name: group[0]?.contender ?? '',
        points: group.map(({ keys, admitted, denied }) => [keys, admitted.cpuMicros + denied.cpuMicros]),
      })),
  }
}
