import { createPool } from 'mysql2'
import type { DriverConnection, DriverPool, DriverQuery } from '../../../lib/stores/mysql/driver.js'

type Callback = (error: unknown, results: unknown) => void

/** Looks at each query on its way to the server; may answer it itself. */
export type Watch = (sql: string, send: (sql: string, callback: Callback) => void, callback: Callback) => void

/** A real pool whose queries a test sees, counts, or lets fail. */
export interface WatchedPool {
  readonly pool: DriverPool & { promise(): unknown }
  /** Queries sent since the last look: on one connection, each is a round trip. */
  sent: string[]
  watch: Watch
  end(): Promise<void>
}

const passOn: Watch = (sql, send, callback) => send(sql, callback)

export function watchedPool(uri: string, options: { multipleStatements: boolean }): WatchedPool {
  const inner = createPool({ uri, connectionLimit: 2, ...options })
  // One wrapper a connection, as a pool hands out the same object each time.
  const wrappers = new Map<DriverConnection, DriverConnection>()
  const watchedConnection = (connection: DriverConnection): DriverConnection => {
    const wrapper = wrappers.get(connection) ?? watchConnection(connection, watched)
    wrappers.set(connection, wrapper)
    return wrapper
  }
  const watched: WatchedPool = {
    sent: [],
    watch: passOn,
    pool: {
      promise: () => inner.promise(),
      on: (event, listener) => inner.on(event, listener as never),
      end: (callback) => inner.end(callback),
      getConnection: (callback) => {
        inner.getConnection((error, connection) => {
          if (error) callback(error, undefined as never)
          else callback(null, watchedConnection(connection as unknown as DriverConnection))
        })
      },
    },
    end: () => inner.promise().end(),
  }
  return watched
}

function watchConnection(connection: DriverConnection, watched: WatchedPool): DriverConnection {
  return {
    config: connection.config ?? {},
    on: (event, listener) => connection.on(event, listener),
    release: () => connection.release(),
    destroy: () => connection.destroy(),
    query(options: DriverQuery, callback) {
      watched.sent.push(options.sql)
      watched.watch(options.sql, (sql, done) => connection.query({ ...options, sql }, done), callback)
    },
  }
}

/** Lets the nth query that matches fail with an error of the server, as if it had been the server that said so. */
export function failOnce(match: (sql: string) => boolean, errno: number, code: string): Watch {
  let failed = false
  return (sql, send, callback) => {
    if (failed || !match(sql)) return send(sql, callback)
    failed = true
    // What the server does with the victim of a deadlock, and of a conflict at COMMIT.
    send('ROLLBACK', () => callback(Object.assign(new Error(code), { errno, code }), undefined))
  }
}
