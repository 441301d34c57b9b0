import { randomUUID } from 'node:crypto'
import type { TestDatabase } from './test-database.js'

/** A user who may read and write the rows of a database, and nothing else. */
export interface DmlUser {
  readonly name: string
  readonly password: string
  /** That of the database, for this user. */
  readonly uri: string
  drop(): Promise<void>
}

/** Creates such a user, as an operator would who grants the least privileges. */
export async function createDmlUser(database: TestDatabase): Promise<DmlUser> {
  const name = `u${randomUUID().slice(0, 8)}`
  const password = 'hunter2'
  const account = `${name}@'%'`
  await database.query(`CREATE USER ${account} IDENTIFIED BY '${password}'`)
  await database.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${database.name}.* TO ${account}`)
  const uri = new URL(database.uri)
  uri.username = name
  uri.password = password
  return {
    name,
    password,
    uri: uri.href,
    async drop() {
      await database.query(`DROP USER ${account}`)
    },
  }
}
