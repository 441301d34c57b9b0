import { resolve } from 'node:path'

/**
 * Where unpacked servers are kept between runs: inside `node_modules`, so that removing that removes them
 * too, or the folder that RATE_LIMIT_SERVERS_CACHE names (a CI job may want to keep it). They are not
 * renewed: remove the folder to get the packages of today. npm scripts run in the project's root.
 */
export function cacheFolder(): string {
  return resolve(process.env.RATE_LIMIT_SERVERS_CACHE || 'node_modules/.cache/express-sql-rate-limit/servers')
}
