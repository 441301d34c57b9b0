import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MysqlStore, SqliteStore } from 'express-sql-rate-limit'
import { createApp } from './app.js'

/** How long requests under way may take once the server is told to stop, in milliseconds. */
const GRACE_MS = 5_000

// A variable that is empty is not set.
const databaseUrl = process.env.DATABASE_URL || null
const sqliteFile = process.env.SQLITE_FILE || 'limits.sqlite'
const port = Number(process.env.PORT || 3000)
if (!Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error(`Expected PORT to be a port number, got ${process.env.PORT}`)
  process.exit(1)
}

// What the API's accounts have used is kept for longer than a year.
const keepUsageSeconds = { plan: 400 * 86_400 }
const store =
  databaseUrl === null
    ? new SqliteStore({ filename: sqliteFile, keepUsageSeconds })
    : new MysqlStore({ uri: databaseUrl, keepUsageSeconds })
const app = createApp(store)
const server = createServer(app)

server.on('listening', () => {
  const address = `http://localhost:${(server.address() as AddressInfo).port}`
  // Never the whole URL: it may hold a password.
  const url = databaseUrl === null ? null : new URL(databaseUrl)
  const where = url === null ? `SQLite file ${sqliteFile}` : `MySQL at ${url.host}${url.pathname}`
  console.log(`Listening on ${address}, counting in ${where}`)
  console.log(`Open ${address} in a browser: buttons to try the limits with, and the dashboard`)
  console.log(`To reset and block keys there too, open ${address}${app.locals.operatorPath}`)
})

server.on('error', (error: NodeJS.ErrnoException) => {
  const isTaken = error.code === 'EADDRINUSE'
  console.error(isTaken ? `Port ${port} is taken. Set PORT to another one.` : error.message)
  process.exitCode = 1
  void store.close()
})

let isStopping = false
function stop(): void {
  // Ctrl+C may arrive twice: from the terminal, and from the program that started this one.
  if (isStopping) return
  isStopping = true
  // Who looks at the dashboard has a stream open, and the server would wait for its end.
  app.locals.dashboard.close()
  server.close(() => void store.close())
  setTimeout(() => server.closeAllConnections(), GRACE_MS).unref()
}
process.on('SIGINT', stop)
process.on('SIGTERM', stop)

// The first decision would do this too, but within its deadline. A database that is down keeps no server from starting.
await store.install().catch((error: Error) => console.error(`The store is not ready: ${error.message}`))
if (!isStopping) server.listen(port)
