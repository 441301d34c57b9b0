import { durationText } from '../duration-text.js'
import { countText, numberText } from '../number-text.js'
import { type Finding, note, ok, warning } from './finding.js'
import type { MysqlFacts } from './mysql-facts.js'

/** How many connections a process of the application opens at most. */
const A_PROCESS = 2
/** From here on nobody who has a handful of processes needs to think of it. */
const PLENTY = 20

/** How many connections there may be, for how long, and who can read along. */
export const checkConnections = (facts: MysqlFacts, hosts: readonly string[]): Finding[] => [
  ofUser(facts),
  ofServer(facts),
  idle(facts),
  encryption(facts, hosts),
]

function ofUser({ session }: MysqlFacts): Finding {
  const most = Number(session.get('max_user_connections') ?? 0)
  if (most === 0) return ok('user_limit', 'The number of connections of this user is not limited.')
  if (most < A_PROCESS) {
    return warning(
      'user_limit',
      `This user may have ${countText(most, 'connection')} (max_user_connections).`,
      'The limiter opens up to two in each process. Run one process, and give the store a pool of one that the application shares: new MysqlStore({ pool: createPool({ uri, connectionLimit: 1 }) }). See docs/shared-hosting.md.',
    )
  }
  const processes = Math.floor(most / A_PROCESS)
  const found = `This user may have ${countText(most, 'connection')} (max_user_connections)`
  if (most >= PLENTY) return ok('user_limit', `${found}.`)
  return note(
    'user_limit',
    `${found}: at two a process, enough for ${countText(processes, 'process').replace('processs', 'processes')}, with none left for the rest of the application.`,
    'Give the store the pool that the application has already (new MysqlStore({ pool })), and keep the sum of all pools of all processes below that number.',
  )
}

function ofServer({ global, status }: MysqlFacts): Finding {
  const most = Number(global.get('max_connections'))
  const now = Number(status.get('threads_connected'))
  const peak = Number(status.get('max_used_connections'))
  const found = `${numberText(now)} of ${numberText(most)} connections are open; at most there were ${numberText(peak)}.`
  if (now < most * 0.8 && peak < most) return ok('connections', found)
  return warning(
    'connections',
    found,
    "When there are no more, new ones are refused, the application's as well. Make pools smaller or processes fewer; or, if the machine has the memory for it, raise the limit here and in the server's configuration:",
    [`SET GLOBAL max_connections = ${most * 2};`],
  )
}

function idle({ session }: MysqlFacts): Finding {
  const seconds = Number(session.get('wait_timeout'))
  const found = `The server closes connections that are idle for ${durationText(seconds)} (wait_timeout).`
  if (seconds >= 10) return ok('wait_timeout', `${found} The limiter opens new ones by itself.`)
  return note(
    'wait_timeout',
    found,
    'The limiter opens new ones by itself, but that costs time at the first request after each pause. If you may, make it longer:',
    ['SET GLOBAL wait_timeout = 600;'],
  )
}

const LOCAL = /^(127\.\d+\.\d+\.\d+|\[?::1\]?|localhost|)$/i

function encryption({ status }: MysqlFacts, hosts: readonly string[]): Finding {
  const cipher = status.get('ssl_cipher') ?? ''
  if (cipher !== '') return ok('encryption', `The connection is encrypted (${cipher}).`)
  if (hosts.every((host) => LOCAL.test(host))) return ok('encryption', 'The server is on this machine.')
  return note(
    'encryption',
    'The connection is not encrypted: who can listen on the way reads the keys, with addresses and names in them.',
    'In a network of your own that may be fine. Else add ?ssl={"rejectUnauthorized":true} to the address, or give the store connection: { …, ssl: { … } }.',
  )
}
