import type { Server } from './server.js'
import { askVersion } from './wait-until-ready.js'

/**
 * The server that DATABASE_URL names, which is used as it is and never stopped; `undefined` when the variable
 * is not set or is the address of another sort of database. Rejects when the server does not answer: who
 * named it wants it used.
 */
export async function databaseUrlServer(): Promise<Server | undefined> {
  const address = process.env.DATABASE_URL
  if (!address || !/^(mysql|mariadb):\/\//.test(address)) return undefined
  const url = new URL(address.replace(/^mariadb:/, 'mysql:'))
  url.pathname = '/' // tests make databases of their own
  const uri = url.href
  const version = await askVersion({ uri }).catch((cause) => {
    throw new Error(`The server at DATABASE_URL (${url.host}) does not answer: ${cause.message}`, { cause })
  })
  return {
    kind: /mariadb/i.test(version) ? 'mariadb' : 'mysql',
    version,
    uri,
    source: 'DATABASE_URL',
    async stop() {},
  }
}
