import { Command } from 'commander'
import type { Answer } from '../answer.js'
import { EXIT } from '../exit-code.js'
import type { Invocation } from '../invocation.js'
import { countText } from '../number-text.js'
import { printable } from '../printable.js'
import { findCandidates, type Selection, selectedRows } from '../selection.js'
import { withSelectionOptions } from '../selection-options.js'
import type { Target } from '../target.js'

const HELP = `
Forgets what is counted of KEY, and its block, in every limiter that knows it, or with --name in that one.
Other processes see it within a second: until then they may refuse from memory.
Usage that is kept for bills (keepUsageSeconds) stays.

Ends with 0, also when nothing was counted.

Examples:
  $ express-sql-rate-limit reset 203.0.113.9
  $ express-sql-rate-limit reset alice --name login
  $ express-sql-rate-limit reset --parts '["claim","42"]'
  $ express-sql-rate-limit reset --stored 'login~Yk2…'`

/** `reset KEY`: forgets what is counted of a key, as `limiter.reset` does. */
export const resetCommand = ({ onDatabase }: Invocation): Command =>
  withSelectionOptions(
    new Command('reset')
      .summary('forget a key, and its block')
      .argument('<KEY>', 'the key, as the limiter is given it'),
  )
    .addHelpText('after', HELP)
    .action((key: string, options: Omit<Selection, 'key'>) =>
      onDatabase((target) => reset(target, { ...options, key })),
    )

async function reset({ reader, store }: Target, selection: Selection): Promise<Answer> {
  const candidates = await findCandidates(reader, selection)
  const keys = (await selectedRows(reader, candidates)).map(({ stored }) => stored)
  if (keys.length > 0) await store.reset(keys)
  const list = keys.map((key) => `  ${printable(key)}`).join('\n')
  return {
    text:
      keys.length === 0
        ? `Nothing is counted of ${printable(selection.key)}.`
        : `Forgot ${countText(keys.length, 'stored key')}; every process sees it within a second:\n${list}`,
    json: { storedKeys: keys, isComplete: candidates.complete },
    exitCode: EXIT.fine,
  }
}
