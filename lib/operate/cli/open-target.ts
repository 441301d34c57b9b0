import type { Address } from './address.js'
import { openMysqlTarget } from './open-mysql-target.js'
import { openSqliteTarget } from './open-sqlite-target.js'
import type { Target } from './target.js'

/**
 * Opens the database of an address. Creates nothing: no table, and no SQLite file but for `install`.
 *
 * @param mayCreate - whether a SQLite file may be made
 * @throws StoreError, with the driver's error as its cause
 */
export const openTarget = (address: Address, mayCreate: boolean): Promise<Target> =>
  address.kind === 'mysql' ? openMysqlTarget(address.uris) : openSqliteTarget(address.filename, mayCreate)
