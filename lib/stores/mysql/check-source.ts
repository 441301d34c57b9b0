import { optionError } from '../option-error.js'
import { hostAddresses } from './hosts.js'
import type { MysqlStoreOptions } from './options.js'

/** @throws TypeError unless exactly one of `uri`, `connection` and `pool` says where the database is. */
export function checkSource(options: MysqlStoreOptions): void {
  const { uri, connection, pool } = options
  const given = (['uri', 'connection', 'pool'] as const).filter((name) => options[name] !== undefined)
  if (given.length > 1) {
    throw new TypeError(`Expected one of \`uri\`, \`connection\` and \`pool\`, got ${given.join(' and ')}`)
  }
  if (given.length === 0) throw optionError('uri', 'a mysql:// address (or give `connection` or `pool`)', uri)
  if (uri !== undefined && !(typeof uri === 'string' && hostAddresses(uri) !== null)) {
    // The address may hold a password: never repeat it.
    throw new TypeError(
      `Expected \`uri\` to be an address like mysql://user@host/database, got another (${typeof uri})`,
    )
  }
  if (connection !== undefined && (typeof connection !== 'object' || connection === null)) {
    throw optionError('connection', 'an object with connection options of mysql2', connection)
  }
  if (pool !== undefined && options.multipleStatements !== undefined) {
    throw new TypeError(
      "`multipleStatements` is for the store's own connections: set it where you make your `pool`",
    )
  }
}
