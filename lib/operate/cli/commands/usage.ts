import { Command, InvalidArgumentError } from 'commander'
import type { UsageStore } from '../../../stores/kept-usage.js'
import type { CalendarUnit } from '../../../stores/store.js'
import { bucketsOf, readBuckets } from '../../usage.js'
import type { Answer } from '../answer.js'
import { EXIT } from '../exit-code.js'
import type { Invocation } from '../invocation.js'
import { countText, numberText } from '../number-text.js'
import { printable } from '../printable.js'
import { findCandidates, type Selection, selectedKey, selectedSecret } from '../selection.js'
import { withSelectionOptions } from '../selection-options.js'
import { storedKeysOf } from '../stored-key.js'
import type { Target } from '../target.js'
import { textTable } from '../text-table.js'
import { UsageError } from '../usage-error.js'
import { usageNamespaces } from '../usage-namespaces.js'

const HELP = `
What KEY has used, for meters and bills: the cost of its admitted hits, from the event log and from what is kept of events that
are deleted (keepUsageSeconds). A fixed window and a calendar quota are in it with "audit: true". Only what is retained can be
told: without keepUsageSeconds and retainSeconds that is the window itself. Buckets that --from or --to cut are told as a whole.

Examples:
  $ express-sql-rate-limit usage acme
  $ express-sql-rate-limit usage acme --name plan --from 2026-01-01 --bucket month
  $ express-sql-rate-limit usage acme --from 2026-11-01 --to 2026-12-01 --time-zone Europe/Berlin --json`

const BUCKETS = ['minute', 'hour', 'day', 'week', 'month', 'year'] as const
const WEEK_MS = 7 * 86_400_000

interface UsageOptions extends Omit<Selection, 'key'> {
  readonly from?: number
  readonly to?: number
  readonly bucket: (typeof BUCKETS)[number]
  readonly timeZone: string
}

/** `usage KEY`: what a key has used, as `usage` tells it. */
export const usageCommand = ({ onDatabase }: Invocation): Command =>
  withSelectionOptions(
    new Command('usage')
      .summary('what a key has used, by days or months')
      .argument('<KEY>', 'the key, as the limiter is given it')
      .option(
        '--from <moment>',
        'from when on: 2026-11-01 or 2026-11-01T00:00Z; default: a week ago',
        momentOf,
      )
      .option('--to <moment>', 'before when; default: now', momentOf)
      .option('--bucket <unit>', `what to sum up by: ${BUCKETS.join(', ')}`, bucketOf, 'day')
      .option('--time-zone <name>', 'whose days and months these are', 'UTC'),
  )
    .addHelpText('after', HELP)
    .action((key: string, options: UsageOptions) =>
      onDatabase((target) => usage(target, { ...options, key }, options)),
    )

function momentOf(text: string): number {
  const millis = Date.parse(text)
  if (/^\d{4}-\d{2}/.test(text) && millis >= 0) return millis
  throw new InvalidArgumentError('Expected a moment such as 2026-11-01 or 2026-11-01T00:00Z.')
}

function bucketOf(text: string): UsageOptions['bucket'] {
  const bucket = BUCKETS.find((each) => each === text)
  if (bucket === undefined) throw new InvalidArgumentError(`Expected one of ${BUCKETS.join(', ')}.`)
  return bucket
}

async function usage(
  { reader, store }: Target,
  selection: Selection,
  options: UsageOptions,
): Promise<Answer> {
  const { bucket, timeZone, to = Date.now(), from = to - WEEK_MS } = options
  if (to <= from) throw new UsageError('Expected --to to be later than --from')
  const buckets = windows(bucket, timeZone, from, to)
  const found = []
  for (const storedKey of await usedKeys(reader, selection)) {
    const told = await readBuckets(store as unknown as UsageStore, storedKey, buckets, bucket === 'minute')
    if (told.used > 0) found.push({ storedKey, ...told })
  }
  return {
    text:
      found.length === 0
        ? `No usage of ${printable(selection.key)} is kept of that time.`
        : found.map(usageText).join('\n\n'),
    json: { bucket, timeZone, keys: found },
    exitCode: EXIT.fine,
  }
}

function windows(bucket: UsageOptions['bucket'], timeZone: string, from: number, to: number) {
  const calendar = bucket === 'minute' ? bucket : { every: bucket as CalendarUnit, timeZone }
  try {
    return bucketsOf(calendar, from * 1000, to * 1000)
  } catch (error) {
    if (error instanceof TypeError) throw new UsageError(error.message)
    throw error
  }
}

/** The stored forms of the key: in limiters that count, and in those of which nothing but usage is left. */
async function usedKeys(reader: Target['reader'], selection: Selection): Promise<string[]> {
  const { stored } = await findCandidates(reader, selection)
  if (selection.stored) return [...stored]
  const { name } = selection
  const namespaces = (await usageNamespaces(reader)).filter(
    (namespace) => name === undefined || namespace === name || namespace.split('@')[0] === name,
  )
  return [
    ...new Set([...stored, ...storedKeysOf(selectedKey(selection), namespaces, selectedSecret(selection))]),
  ]
}

interface Told {
  readonly storedKey: string
  readonly used: number
  readonly buckets: readonly { readonly from: Date; readonly to: Date; readonly used: number }[]
}

function usageText({ storedKey, used, buckets }: Told): string {
  const rows = buckets
    .filter((each) => each.used > 0)
    .map((each) => [each.from.toISOString(), each.to.toISOString(), numberText(each.used)])
  return `${printable(storedKey)}: ${numberText(used)} in ${countText(buckets.length, 'bucket')}\n\n${textTable(['from', 'to', '>used'], rows)}`
}
