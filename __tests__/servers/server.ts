/**
 * The two families of database servers that the tests run against. SQLite is embedded and needs no server.
 */
export type ServerKind = 'mysql' | 'mariadb'

/** Every {@link ServerKind}, in the order in which they are printed. */
export const serverKinds: readonly ServerKind[] = ['mysql', 'mariadb']

/** What a test has to know about a server. It is plain data: it travels to the test workers as JSON. */
export interface ServerInfo {
  readonly kind: ServerKind
  /** As the server answers `SELECT VERSION()`, for example `9.7.4-2` or `10.11.18-MariaDB-0+deb12u1`. */
  readonly version: string
  /** Without a database: `mysql://root@127.0.0.1:20123/`. */
  readonly uri: string
}

/** A server which accepts queries. */
export interface Server extends ServerInfo {
  /**
   * How it was obtained, for people: `/usr/sbin/mysqld`, `Debian sid`, `Docker mysql:9.7`, `DATABASE_URL`.
   */
  readonly source: string
  /**
   * Ends the server and removes what it wrote. Calling it again is harmless. Never touches a server of the
   * user.
   */
  stop(): Promise<void>
}

/** A server that was started here, and which tests may therefore break. */
export interface PrivateServer extends Server {
  readonly port: number
  /**
   * Process id; it changes with {@link restart}. A container on another machine or in a VM has its id there.
   */
  readonly pid: number
  /** The folder with the data; `undefined` inside a container. */
  readonly dataFolder: string | undefined
  /** Sends a signal: `SIGSTOP` freezes, `SIGCONT` thaws, `SIGKILL` crashes, `SIGTERM` shuts down in order. */
  signal(name: NodeJS.Signals): Promise<void>
  /** Settles when the process has ended, at once when it is not running. */
  exited(): Promise<void>
  /** Starts it on the same data and port (killed first when it still runs), with other `flags` when given. */
  restart(flags?: readonly string[]): Promise<void>
}

/** How to start a private server. */
export interface StartOptions {
  /** More options for the server program, after ours, so that they win: `['--binlog-format=STATEMENT']`. */
  readonly flags?: readonly string[]
  /** A port on 127.0.0.1; by default one that is free. */
  readonly port?: number
  /** Milliseconds within which it must answer a query. Default 120000: a CI machine may be very slow. */
  readonly startTimeout?: number
  /** Variables for the server's process beside those of ours. A container gets none. */
  readonly environment?: Readonly<Record<string, string>>
}
