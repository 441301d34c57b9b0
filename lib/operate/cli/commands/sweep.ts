import { Command } from 'commander'
import type { Answer } from '../answer.js'
import { EXIT } from '../exit-code.js'
import type { Invocation } from '../invocation.js'
import { countText } from '../number-text.js'
import { showSweep } from '../show-sweep.js'
import type { Target } from '../target.js'

const HELP = `
Removes keys that nobody has used for longer than their window and retention, with their events, in short transactions. The
limiter does the same every "sweepSeconds"; this is for stores with sweepSeconds: false, or when much has piled up.
Usage that is kept for bills (keepUsageSeconds) stays.
One process sweeps at a time. It can be ended at any moment: what is removed stays removed.

Ends with 0; with 1 when another process was sweeping, so that this one removed nothing.

Examples:
  $ express-sql-rate-limit sweep
  $ 0 4 * * *  express-sql-rate-limit sweep    # in a crontab, with DATABASE_URL set there`

/** The bar's length is counted no further than this. */
const MOST_COUNTED = 1_000_000

/** `sweep`: removes what nobody uses any more, as `store.sweep()` does. */
export const sweepCommand = ({ onDatabase, progress }: Invocation): Command =>
  new Command('sweep')
    .summary('remove keys that nobody uses any more')
    .addHelpText('after', HELP)
    .action(() => onDatabase((target) => sweep(target, progress)))

async function sweep({ reader, store }: Target, stream: NodeJS.WriteStream | null): Promise<Answer> {
  const expired = stream === null ? 0 : await reader.countExpired(MOST_COUNTED)
  const shown = stream === null ? null : showSweep(stream, expired)
  const begun = performance.now()
  try {
    const { keys, events, ran } = await store.sweep((soFar) => shown?.update(soFar))
    shown?.end()
    return {
      text: ran
        ? `Removed ${countText(keys, 'key')} and ${countText(events, 'event')}.`
        : 'Another process is sweeping at the moment, or was ended in the middle less than 30 seconds ago.',
      json: { ran, keys, events, seconds: Math.round(performance.now() - begun) / 1000 },
      exitCode: ran ? EXIT.fine : EXIT.finding,
    }
  } finally {
    shown?.end()
  }
}
