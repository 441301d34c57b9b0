import { durationText } from '../duration-text.js'
import { countText, numberText } from '../number-text.js'
import type { Reader } from '../reader.js'
import type { Target } from '../target.js'
import { type Finding, ok, warning } from './finding.js'

/** Expired keys are counted no further than this. */
const MOST_COUNTED = 100_000
/** So many keys that could have gone so long ago, in seconds, are no longer the rhythm of a sweep. */
const PILE = 10_000
const STALE_SECONDS = 3_600

const SIZES = `-- what the catalogue believes, without a count: rows and bytes of each table
SELECT TABLE_NAME, TABLE_ROWS, DATA_LENGTH + INDEX_LENGTH
FROM information_schema.TABLES
WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('rate_keys', 'rate_events')
ORDER BY TABLE_NAME DESC`

const OLDEST = `-- the key that could have gone first: the beginning of an index
SELECT MIN(expires_at)
FROM rate_keys`

const SWEPT = `SELECT sweep_until
FROM rate_limit_schema
WHERE id = 1`

/** How large the tables are, and whether what may go does go. */
export async function checkRows({ kind, reader }: Target): Promise<Finding[]> {
  const now = await reader.now()
  const expired = await reader.countExpired(MOST_COUNTED)
  const number = async (sql: string): Promise<number> => Number((await reader.query(sql, []))[0]?.[0] ?? 0)
  const sweptAt = await number(SWEPT)
  const overdue = expired === 0 ? 0 : (now - (await number(OLDEST))) / 1e6
  const last = sweptAt === 0 ? 'It was never swept.' : sweptText(now, sweptAt)
  const count = `${expired === MOST_COUNTED ? 'More than ' : ''}${countText(expired, 'key')} can be swept. ${last}`
  return [
    ok('size', kind === 'mysql' ? await mysqlSize(reader) : await sqliteSize(reader)),
    expired < PILE || overdue < STALE_SECONDS
      ? ok('sweep', count)
      : warning(
          'sweep',
          `${count} The oldest could have gone ${durationText(overdue)} ago.`,
          'The application sweeps by itself, once a minute, unless it has sweepSeconds: false or no process of it runs. Clean up now with express-sql-rate-limit sweep, and look at that option.',
        ),
  ]
}

function sweptText(now: number, sweptAt: number): string {
  const seconds = (now - sweptAt) / 1e6
  return seconds < 0 ? 'A sweep is under way.' : `It was swept ${durationText(seconds)} ago.`
}

async function mysqlSize(reader: Reader): Promise<string> {
  const rows = await reader.query(SIZES, [])
  const tables = rows.map(
    ([name, count, bytes]) =>
      `${String(name)} has about ${countText(Number(count ?? 0), 'row')} in ${megabytes(Number(bytes ?? 0))}`,
  )
  return `${tables.join(', ')}.`
}

async function sqliteSize(reader: Reader): Promise<string> {
  const [pages] = (await reader.query('PRAGMA page_count', []))[0] ?? []
  const [bytes] = (await reader.query('PRAGMA page_size', []))[0] ?? []
  return `The file has ${megabytes(Number(pages) * Number(bytes))}.`
}

export const megabytes = (bytes: number): string => `${numberText(Math.round(bytes / 10_485.76) / 100)} MiB`
