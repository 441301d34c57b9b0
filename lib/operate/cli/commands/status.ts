import { Command } from 'commander'
import type { Answer } from '../answer.js'
import { durationText } from '../duration-text.js'
import { EXIT } from '../exit-code.js'
import type { Invocation } from '../invocation.js'
import { estimate, exactly, type KeyState, stateOf } from '../key-state.js'
import { printable } from '../printable.js'
import {
  type Candidates,
  findCandidates,
  hashedLimiters,
  type Selection,
  selectedRows,
} from '../selection.js'
import { withSelectionOptions } from '../selection-options.js'
import { statesTable } from '../states-table.js'
import type { Target } from '../target.js'

const HELP = `
What is counted of KEY by every limiter that knows it. It reads only, counts nothing, and waits for no lock.
A limit itself is not stored, so that how much is left is known to the application alone.

Ends with 0; with 1 when KEY is blocked.

Examples:
  $ express-sql-rate-limit status 203.0.113.9
  $ express-sql-rate-limit status alice --name login
  $ express-sql-rate-limit status --parts '["claim","42"]'
  $ express-sql-rate-limit status alice --json | jq '.keys[].used'`

/** `status KEY`: what is counted of a key. */
export const statusCommand = ({ onDatabase }: Invocation): Command =>
  withSelectionOptions(
    new Command('status')
      .summary('what is counted of a key')
      .argument('<KEY>', 'the key, as the limiter is given it'),
  )
    .addHelpText('after', HELP)
    .action((key: string, options: Omit<Selection, 'key'>) =>
      onDatabase((target) => status(target, { ...options, key })),
    )

async function status({ reader }: Target, selection: Selection): Promise<Answer> {
  const candidates = await findCandidates(reader, selection)
  const rows = await selectedRows(reader, candidates)
  const now = await reader.now()
  const estimates = await exactly(
    reader,
    rows.map((row) => estimate(row, now)),
  )
  const keys = estimates.map((each) => stateOf(each, now))
  const blocked = Math.max(0, ...keys.map(({ blockedSeconds }) => blockedSeconds))
  return {
    text: [
      keys.length === 0 ? nothing(selection, candidates) : statesTable(keys, now),
      ...(blocked > 0 ? ['', blockedText(keys, blocked)] : []),
      ...(candidates.complete
        ? []
        : ['', 'There are more limiters than were looked at: name one with --name.']),
    ].join('\n'),
    json: {
      keys,
      isBlocked: blocked > 0,
      hashedLimiters: hashedLimiters(candidates),
      isComplete: candidates.complete,
    },
    exitCode: blocked > 0 ? EXIT.finding : EXIT.fine,
  }
}

function nothing({ key, name, hashed }: Selection, candidates: Candidates): string {
  const where = name === undefined ? '' : ` by ${printable(name)}`
  const found = `Nothing is counted of ${printable(key)}${where}.`
  const hidden = hashedLimiters(candidates)
  if (hashed || hidden.length === 0) return found
  return `${found} The keys of ${hidden.join(', ')} are hashed: see --hashed.`
}

const blockedText = (keys: readonly KeyState[], seconds: number): string =>
  `Blocked for ${durationText(seconds)}${keys.length === 1 ? '' : ', where it says so'}. To end that: express-sql-rate-limit reset KEY`
