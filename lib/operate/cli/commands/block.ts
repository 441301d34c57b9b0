import { Command, InvalidArgumentError } from 'commander'
import { storedForm } from '../../../limiter/storage-key.js'
import { withinDeadline } from '../../../stores/before-abort.js'
import type { Policy } from '../../../stores/store.js'
import type { Answer } from '../answer.js'
import { durationText } from '../duration-text.js'
import { EXIT } from '../exit-code.js'
import type { Invocation } from '../invocation.js'
import { printable } from '../printable.js'
import {
  type Candidates,
  findCandidates,
  type Selection,
  selectedKey,
  selectedRows,
  selectedSecret,
} from '../selection.js'
import { withSelectionOptions } from '../selection-options.js'
import type { Target } from '../target.js'
import { UsageError } from '../usage-error.js'

const HELP = `
Denies everything on KEY for so many seconds, 0.001 to 31536000 (a year), by the database's clock. A longer block that is
there stays; reset ends it. It holds in every process from its next decision on; one that uses "lease" sees it within a second.

Without --name it blocks KEY in every limiter that counts it at the moment. With --name it need not be counted yet.

Examples:
  $ express-sql-rate-limit block 203.0.113.9 3600
  $ express-sql-rate-limit block alice 86400 --name login
  $ express-sql-rate-limit block alice 86400 --name login@900
  $ express-sql-rate-limit reset alice --name login`

const BLOCK_MS = 10_000

/** `block KEY SECONDS`: denies everything on a key for a while, as `limiter.block` does. */
export const blockCommand = ({ onDatabase }: Invocation): Command =>
  withSelectionOptions(
    new Command('block')
      .summary('deny everything on a key for a while')
      .argument('<KEY>', 'the key, as the limiter is given it')
      .argument('<SECONDS>', 'for how long', secondsOf),
  )
    .addHelpText('after', HELP)
    .action((key: string, seconds: number, options: Omit<Selection, 'key'>) =>
      onDatabase((target) => block(target, { ...options, key }, seconds)),
    )

function secondsOf(text: string): number {
  const seconds = Number(text)
  if (/^\d+(\.\d+)?$/.test(text) && seconds >= 0.001 && seconds <= 31_536_000) return seconds
  throw new InvalidArgumentError('Expected a number from 0.001 to 31536000.')
}

async function block({ reader, store }: Target, selection: Selection, seconds: number): Promise<Answer> {
  const candidates = await findCandidates(reader, selection)
  const rows = await selectedRows(reader, candidates)
  const found = rows.map(({ stored }) => stored)
  const keys = found.length > 0 ? found : newKeys(selection, candidates)
  for (const key of keys) {
    const charge = { key, policy: ANY_POLICY }
    await withinDeadline(BLOCK_MS, (signal) => store.block(charge, Math.round(seconds * 1e6), signal))
  }
  const after = await selectedRows(reader, { ...candidates, stored: keys })
  const until = Math.max(...after.map(({ blocked }) => blocked))
  const blockedUntil = new Date(Math.floor(until / 1000)).toISOString()
  return {
    text: `Blocked for ${durationText(seconds)}, until ${blockedUntil}:\n${keys.map((key) => `  ${printable(key)}`).join('\n')}`,
    json: { storedKeys: keys, seconds, blockedUntil },
    exitCode: EXIT.fine,
  }
}

/** A block belongs to a key and not to a policy: stores look at the key alone. */
const ANY_POLICY: Policy = {
  ...{ name: 'default', limit: 0, windowSeconds: 1, windowMicros: 1_000_000, keepMicros: 1_000_000 },
  ...{ algorithm: 'sliding-window', audit: false },
}

/** What a key that is not counted yet is called in the limiter that was named. */
function newKeys(selection: Selection, { stored, prefixes }: Candidates): readonly string[] {
  const { name, key } = selection
  if (selection.stored) return stored
  if (name === undefined) {
    throw new UsageError(
      `No limiter counts ${printable(key)} at the moment: say with --name in which one to block it`,
    )
  }
  if (!/^[A-Za-z0-9._-]{1,64}(@[^:["~]+)?$/.test(name)) {
    throw new UsageError('Expected --name to be 1 to 64 letters, digits, dots, underscores and hyphens')
  }
  if (stored.length === 0 && prefixes.length > 0) {
    throw new UsageError(
      selection.hashed
        ? `${name} stores keys that are not hashed: leave --hashed out`
        : `${name} stores hashed keys: say --hashed`,
    )
  }
  // As the limiter's other keys are stored; without any, as a sliding window's.
  return stored.length > 0 ? stored : [storedForm(name, selectedKey(selection), selectedSecret(selection))]
}
