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
import { entryBars, entryTable, P50, rawEntries } from '../load/entry-table.js'
import { entryOf, p50Ratio } from '../load/ratios.js'
import { startProxy } from '../proxy/start-proxy.js'
import type { Context, Section } from '../section.js'

const CONTENDERS = [slidingMysql, fixedMysql, rlfMysql, hitlimitOnMysql, handMysql, rlfRedis, erlRedis]
const QUICK = [slidingMysql, rlfMysql, hitlimitOnMysql, erlRedis]
const work = { callers: 1, keys: 100 }
/** Each way: a server in the same region, not on the same machine. */
const DELAY_MS = 0.5

const roundsOf = (quick: boolean): number => (quick ? 2 : 5)

/** How long one decision takes when nobody else asks. */
export const oneCaller: Section = {
  id: 'one-caller',
  title: 'One caller at a time: MySQL, with Redis beside it',
  steps: (quick) => 2 * roundsOf(quick),
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
    return {
      id: this.id,
      title: this.title,
      text: TEXT,
      tables: [
        entryTable('On loopback', near, P50),
        entryTable(`Through a proxy that adds ${DELAY_MS} ms each way`, far, P50),
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
      ],
      raw: {
        loopback: rawEntries(near),
        farAway: rawEntries(far),
      },
    }
  },
}

const TEXT = `One caller hits 100 keys, all of which are there already, one after the other. On loopback a round trip costs
next to nothing, so statements count; with a network between, round trips do. The proxy that stands for the network is a
process of its own.`

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
