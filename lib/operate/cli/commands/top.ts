import { Command, InvalidArgumentError } from 'commander'
import type { Answer } from '../answer.js'
import { EXIT } from '../exit-code.js'
import type { Invocation } from '../invocation.js'
import { type KeyState, stateOf } from '../key-state.js'
import { numberText } from '../number-text.js'
import { ORDERS, type Order, rankKeys } from '../rank-keys.js'
import { statesTable } from '../states-table.js'
import type { Target } from '../target.js'
import { wholeNumber } from '../whole-number.js'

const HELP = `
The keys that count most, of those that still count. It reads only, waits for no lock, and goes by an index over no more keys
than --scan says: those that count longest from now. Where there are more, it says so: name a limiter, or let it look at more.

  used     the highest cost in the window: the fullest, where limits are alike
  rate     the highest cost for each second of the window: the busiest
  recent   those hit last
  blocked  those that are blocked, the longest first

Examples:
  $ express-sql-rate-limit top
  $ express-sql-rate-limit top --by rate --name login --count 5
  $ express-sql-rate-limit top --by blocked
  $ express-sql-rate-limit top --scan 100000 --json | jq -r '.keys[].storedKey'`

interface TopOptions {
  readonly by: Order
  readonly count: number
  readonly scan: number
  readonly name?: string
}

/** `top`: the keys that count most. */
export const topCommand = ({ onDatabase }: Invocation): Command =>
  new Command('top')
    .summary('the fullest and the busiest keys')
    .option('--by <order>', `what counts: ${ORDERS.join(', ')}`, orderOf, 'used')
    .option('--count <n>', 'how many keys to show, 1 to 1000', wholeNumber(1, 1000), 10)
    .option('--scan <n>', 'how many keys to look at, 1 to 1000000', wholeNumber(1, 1_000_000), 10_000)
    .option('--name <limiter>', 'only this limiter; login@900 for a fixed window of 900 seconds')
    .addHelpText('after', HELP)
    .action((options: TopOptions) => onDatabase((target) => top(target, options)))

function orderOf(text: string): Order {
  const order = ORDERS.find((each) => each === text)
  if (order === undefined) throw new InvalidArgumentError(`Expected one of ${ORDERS.join(', ')}.`)
  return order
}

async function top({ reader }: Target, options: TopOptions): Promise<Answer> {
  const { by, count, scan, name } = options
  const now = await reader.now()
  const { estimates, scanned, isComplete } = await rankKeys(
    reader,
    { by, count, scan, name: name ?? null },
    now,
  )
  const keys = estimates.map((each): KeyState => stateOf(each, now))
  const table = keys.length === 0 ? 'No key counts anything.' : statesTable(keys, now)
  const more = `Of the ${numberText(scanned)} keys looked at; there are more: --scan looks at more of them, --name at one limiter.`
  return {
    text: isComplete ? table : `${table}\n\n${more}`,
    json: { by, keys, scanned, isComplete },
    exitCode: EXIT.fine,
  }
}
