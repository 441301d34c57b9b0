import type { Contender } from '../contenders/contender.js'
import { fixedMysql, handMysql, hitlimitOnMysql, rlfMysql, slidingMysql } from '../contenders/line-up.js'
import { type CountedLoad, countWork, type WorkPerHit } from '../load/count-work.js'
import { startProxy } from '../proxy/start-proxy.js'
import { number } from '../report/number.js'
import type { Section, Table } from '../section.js'

const CONTENDERS = [slidingMysql, fixedMysql, rlfMysql, hitlimitOnMysql, handMysql]
const QUICK = [slidingMysql, rlfMysql]

const contendersOf = (quick: boolean) => (quick ? QUICK : CONTENDERS)
const loadsOf = (quick: boolean) => {
  const hits = quick ? 50 : 200
  return {
    known: { callers: 1, keys: 50, prefix: 'known', warmUp: 50, hits },
    fresh: { callers: 1, keys: hits, prefix: 'fresh', warmUp: 0, hits },
    many: { callers: 64, keys: 500, prefix: 'many', warmUp: 500, hits: quick ? 640 : 1280 },
  } as const satisfies Record<string, CountedLoad>
}

/** Columns of the tables, and the counters behind each. */
const COLUMNS = {
  'round trips': ['roundTrips'],
  commands: ['commands'],
  statements: ['Questions'],
  'written transactions': ['Binlog_cache_use'],
  'redo syncs': ['Innodb_os_log_fsyncs'],
  'rows written': ['Innodb_rows_inserted', 'Innodb_rows_updated', 'Innodb_rows_deleted'],
  'bytes to the server': ['Bytes_received'],
  'bytes back': ['Bytes_sent'],
}

/** Of how many messages, statements and commits a decision consists: what does not depend on the machine. */
export const roundTrips: Section = {
  id: 'round-trips',
  title: 'What a decision makes MySQL do',
  steps: (quick) => contendersOf(quick).length,
  async run({ quick, servers, step }) {
    const loads = loadsOf(quick)
    const names = Object.keys(loads) as (keyof typeof loads)[]
    const counts = { known: counted(), fresh: counted(), many: counted() }
    const proxy = await startProxy(servers.mysql.uri, 0)
    try {
      for (const contender of contendersOf(quick)) {
        const found = await countWork(contender, servers, proxy, Object.values(loads))
        for (const [i, name] of names.entries()) counts[name].set(contender, found[i] as WorkPerHit)
        step(contender.name)
      }
    } finally {
      await proxy.stop()
    }
    const ours = [counts.known, counts.fresh].map((each) => each.get(slidingMysql)?.roundTrips ?? Number.NaN)
    return {
      id: this.id,
      title: this.title,
      text: TEXT,
      tables: [
        countTable('Per decision: one caller, keys that are there', counts.known),
        countTable('Per decision: one caller, new keys', counts.fresh),
        countTable('Per decision: 64 callers, 500 keys', counts.many),
      ],
      plots: [],
      targets: [
        {
          what: 'one caller: round trips a decision, keys that are there and new ones, the larger',
          value: Math.max(...ours),
          atMost: 2,
        },
      ],
      raw: Object.fromEntries(
        names.map((name) => [
          name,
          Object.fromEntries([...counts[name]].map(([contender, work]) => [contender.name, work])),
        ]),
      ),
    }
  },
}

const TEXT = `Admitted hits. Commands and round trips are counted on the wire, by a proxy that reads the protocol (a round trip: the
client speaks after the server has spoken), the rest by the server itself (\`SHOW GLOBAL STATUS\`): statements (\`Questions\`),
transactions that wrote (\`Binlog_cache_use\`), syncs of the redo log (\`Innodb_os_log_fsyncs\`), rows, bytes. These figures
depend on no machine, but for how much is shared when 64 callers come at once.`

const counted = (): Map<Contender, WorkPerHit> => new Map()

function countTable(title: string, counts: ReadonlyMap<Contender, WorkPerHit>): Table {
  const rows = [...counts].map(([{ name }, perHit]) => [
    name,
    ...Object.values(COLUMNS).map((counters) =>
      number(counters.reduce((sum, counter) => sum + (perHit[counter] ?? Number.NaN), 0)),
    ),
  ])
  return { title, columns: ['contender', ...Object.keys(COLUMNS)], rows }
}
