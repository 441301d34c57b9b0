import {
  erlRedis,
  fixedMysql,
  handMysql,
  hitlimitOnMysql,
  rlfMysql,
  rlfRedis,
  slidingMysql,
} from '../contenders/line-up.js'
import { type Comparison, compare, type Entry } from '../load/compare.js'
import { countWork, type WorkPerHit } from '../load/count-work.js'
import { entryBars, entryTable, P50, rawEntries } from '../load/entry-table.js'
import { entryOf, p50Ratio } from '../load/ratios.js'
import { startProxy } from '../proxy/start-proxy.js'
import { number } from '../report/number.js'
import type { Context, Section, Table } from '../section.js'

const CONTENDERS = [slidingMysql, fixedMysql, rlfMysql, hitlimitOnMysql, handMysql, rlfRedis, erlRedis]
const QUICK = [slidingMysql, rlfMysql, hitlimitOnMysql, erlRedis]
const work = { callers: 1, keys: 100 }
const COUNTED = [slidingMysql, fixedMysql, rlfMysql, hitlimitOnMysql, handMysql]
/** Each way: a server in the same region, not on the same machine. */
const DELAY_MS = 0.5

const countedOf = (quick: boolean) => (quick ? COUNTED.slice(0, 1) : COUNTED)
const roundsOf = (quick: boolean): number => (quick ? 2 : 5)

/** How long one decision takes when nobody else asks, and of how many messages it consists. */
export const oneCaller: Section = {
  id: 'one-caller',
  title: 'One caller at a time: MySQL, with Redis beside it',
  steps: (quick) => 2 * roundsOf(quick) + countedOf(quick).length,
  async run(context) {
    const { quick } = context
    const comparison = {
      contenders: quick ? QUICK : CONTENDERS,
      rule: { limit: 1_000_000_000, windowSeconds: 60 },
      rounds: roundsOf(quick),
      millis: quick ? 150 : 350,
      warmUpMillis: quick ? 100 : 300,
    }
    const [near = []] = await compare(context, comparison, [{ ...work, label: 'loopback' }])
    const far = await compareFarAway(context, comparison)
    const counts = await countEach(context)
    return {
      id: this.id,
      title: this.title,
      text: TEXT,
      tables: [
        entryTable('On loopback', near, P50),
        entryTable(`Through a proxy that adds ${DELAY_MS} ms each way`, far, P50),
        countTable('Per decision, one caller, 50 keys', counts.alone),
        countTable('Per decision, 64 callers, 500 keys', counts.together),
      ],
      plots: [
        entryBars('one-caller-near', 'One caller, on loopback', near, P50),
        entryBars('one-caller-far', `One caller, ${DELAY_MS} ms away each way`, far, P50),
      ],
      targets: [
        {
          what: 'one caller, loopback: p50 against rate-limiter-flexible MySQL',
          value: p50Ratio(entryOf(near, slidingMysql), entryOf(near, rlfMysql)),
          atMost: 1,
        },
        {
          what: `one caller, ${DELAY_MS} ms away: p50 against rate-limiter-flexible MySQL`,
          value: p50Ratio(entryOf(far, slidingMysql), entryOf(far, rlfMysql)),
          atMost: 0.6,
        },
        {
          what: 'one caller: round trips a decision',
          value: counts.alone.get(slidingMysql.name)?.roundTrips ?? Number.NaN,
          atMost: 2,
        },
      ],
      raw: {
        loopback: rawEntries(near),
        farAway: rawEntries(far),
        alone: Object.fromEntries(counts.alone),
        together: Object.fromEntries(counts.together),
      },
    }
  },
}

const TEXT = `One caller hits 100 keys, one after the other. On loopback a round trip costs next to nothing, so statements
count; with a network between, round trips do. The proxy and the counting of messages stand in a process of their own.
Commands and round trips are counted on the wire (a round trip: the client speaks after the server has spoken), the rest
by the server itself (\`SHOW GLOBAL STATUS\`): statements (\`Questions\`), transactions that wrote (\`Binlog_cache_use\`),
syncs of the redo log (\`Innodb_os_log_fsyncs\`), rows, bytes.`

async function compareFarAway(context: Context, comparison: Comparison): Promise<Entry[]> {
  const { mysql, redis } = context.servers
  const toMysql = await startProxy(mysql.uri, DELAY_MS)
  const toRedis = await startProxy(redis.uri, DELAY_MS)
  try {
    const reach: Comparison['reach'] = ({ at }, { store }) =>
      (store === 'redis' ? toRedis : toMysql).reach(at)
    const [entries = []] = await compare(context, { ...comparison, reach }, [{ ...work, label: 'far away' }])
    return entries
  } finally {
    await toMysql.stop()
    await toRedis.stop()
  }
}

async function countEach({ servers, quick, step }: Context) {
  const alone = new Map<string, WorkPerHit>()
  const together = new Map<string, WorkPerHit>()
  const loads = [
    { callers: 1, keys: 50, warmUp: quick ? 100 : 200, hits: quick ? 50 : 200 },
    { callers: 64, keys: 500, warmUp: 1500, hits: quick ? 640 : 1280 },
  ]
  const proxy = await startProxy(servers.mysql.uri, 0)
  try {
    for (const contender of countedOf(quick)) {
      const [one, many] = await countWork(contender, servers, proxy, loads)
      if (one !== undefined) alone.set(contender.name, one)
      if (many !== undefined) together.set(contender.name, many)
      step(`messages and statements of ${contender.name}`)
    }
  } finally {
    await proxy.stop()
  }
  return { alone, together }
}

function countTable(title: string, counts: ReadonlyMap<string, WorkPerHit>): Table {
  const columns = {
    'round trips': ['roundTrips'],
    commands: ['commands'],
    statements: ['Questions'],
    'written transactions': ['Binlog_cache_use'],
    'redo syncs': ['Innodb_os_log_fsyncs'],
    'rows written': ['Innodb_rows_inserted', 'Innodb_rows_updated', 'Innodb_rows_deleted'],
    'bytes to the server': ['Bytes_received'],
    'bytes back': ['Bytes_sent'],
  }
  const rows = [...counts].map(([name, perHit]) => [
    name,
    ...Object.values(columns).map((counters) =>
      number(counters.reduce((sum, counter) => sum + (perHit[counter] ?? Number.NaN), 0)),
    ),
  ])
  return { title, columns: ['contender', ...Object.keys(columns)], rows }
}
