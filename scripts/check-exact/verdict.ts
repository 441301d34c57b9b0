import { type Findings, LIMIT, WINDOW_SECONDS } from './check-exact.js'

/** What each code means to somebody who runs a check. */
const MEANINGS: Readonly<Record<string, string>> = {
  ERR_STORE_TIMEOUT: 'no answer within 5 seconds',
  ERR_STORE_CONFLICT: 'nothing but deadlocks or lock waits for 5 seconds',
  ERR_STORE_CONNECTION: 'the connection was lost or refused',
  ERR_STORE_CAPACITY: 'no connection to be had, or too many hits waiting',
  ERR_STORE_READ_ONLY: 'the server took no writes, as in a failover',
  ERR_STORE_SCHEMA: 'a table was missing or changed',
  ERR_STORE_CONFIG: 'the server refused the user or the statement',
  ERR_STORE_DOWN: 'not asked, as it had failed again and again',
}
/** How many faults are shown. */
const SHOWN = 10

const number = (value: number): string => value.toLocaleString('en-US')

/** What a check found, for a person. The last line begins with the verdict. */
export function verdictText(findings: Findings): string {
  const { server, keys, admitted, refused, refusedByStore, undecided, stored, incident, faults } = findings
  const unknown = Object.values(undecided).reduce((sum, times) => sum + times, 0)
  const lines = [
    server.name,
    `  hits       ${number(admitted + refused + unknown)} on ${number(keys)} keys: one hot, 50 busy, the others cold`,
    `  admitted   ${number(admitted)}; stored: ${number(stored)}`,
    `  refused    ${number(refused)}, of which ${number(refusedByStore)} by the database and the others from memory`,
    `  undecided  ${number(unknown)}`,
    ...Object.entries(undecided).map(
      ([code, times]) => `    ${number(times)} × ${code}: ${MEANINGS[code] ?? 'the database said no'}`,
    ),
  ]
  if (incident !== null) lines.push(`  Meanwhile ${incident}.`)
  else if (unknown > 0)
    lines.push('  The server was not restarted: it is the same one, and has been up all the time.')
  lines.push('')
  if (faults.length > 0) {
    lines.push(...faults.slice(0, SHOWN).map((fault) => `  ${fault}`))
    if (faults.length > SHOWN) lines.push(`  and ${number(faults.length - SHOWN)} more`)
    lines.push('', `NOT EXACT: ${number(faults.length)} times the limit of ${LIMIT} was not what was told.`)
    return `${lines.join('\n')}\n`
  }
  const second = WINDOW_SECONDS === 1 ? 'second' : `${WINDOW_SECONDS} seconds`
  const rest = unknown > 0 ? ' What the database could not decide broke nothing.' : ''
  lines.push(
    `EXACT: no ${second} held more than ${LIMIT}, no hit was refused without need, none was lost.${rest}`,
  )
  return `${lines.join('\n')}\n`
}
