import { type ChildProcess, spawn } from 'node:child_process'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Guard } from './create-guard.js'
import { lastLines } from './last-lines.js'
import type { ServerProgram } from './server-program.js'
import { userFlags } from './user-flags.js'
import { waitUntilReady } from './wait-until-ready.js'

/** Where a server process works. */
export interface ServerPlace {
  /** With `data` and `tmp` in it; the socket and the log come there too. */
  readonly folder: string
  readonly port: number
  /** Kills the process when ours ends. */
  readonly guard: Guard
  /** Milliseconds within which it must answer a query. */
  readonly startTimeout: number
  /** Variables beside those of ours. */
  readonly environment: Readonly<Record<string, string>>
}

/** The process of a server, which may end and be started again in the same place. */
export class ServerProcess {
  readonly #program: ServerProgram
  readonly #place: ServerPlace
  #child: ChildProcess | undefined
  #exited: Promise<void> = Promise.resolve()

  constructor(program: ServerProgram, place: ServerPlace) {
    this.#program = program
    this.#place = place
  }

  /** Of the process that was started last, even when it has ended; 0 before the first. */
  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** Sends a signal; does nothing when the process has ended. */
  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name)
  }

  /** Settles when the process has ended. */
  exited(): Promise<void> {
    this.#child?.ref()
    return this.#exited
  }

  /** Ends the process at once, a stopped one too. */
  kill(): Promise<void> {
    this.signal('SIGKILL')
    return this.exited()
  }

  /** Starts the process and returns the version that it answers. Rejects with the end of its log. */
  async start(flags: readonly string[]): Promise<string> {
    const { folder, guard, startTimeout, environment } = this.#place
    const [command = '', ...args] = [...this.#program.command, ...this.#flags(), ...flags]
    const log = await open(join(folder, 'error.log'), 'a')
    // `detached` gives it a process group, for the guard to kill, and keeps a Ctrl-C in the terminal away
    // from it.
    const child = spawn(command, args, {
      cwd: folder,
      detached: true,
      env: { ...process.env, ...environment },
      stdio: ['ignore', log.fd, log.fd],
    })
    let end: string | undefined
    this.#child = child
    this.#exited = new Promise((resolve) => {
      const settle = (reason: string): void => {
        end = reason
        guard.watch(undefined)
        resolve()
      }
      child.once('error', (error) => settle(error.message))
      child.once('exit', (code, signal) => settle(`it ended with ${signal ?? code}`))
    })
    guard.watch(child.pid)
    child.unref() // a script that forgets to stop its server can still end, and the guard then stops it
    await log.close() // only now: the process may end meanwhile, which someone must already listen for
    try {
      // By the socket, which cannot belong to another server that took the same port at the same moment.
      return await waitUntilReady(
        { user: 'root', socketPath: join(folder, 'socket') },
        { milliseconds: startTimeout, hopeless: () => end },
      )
    } catch (cause) {
      const { kind, source } = this.#program
      const text = await readFile(join(folder, 'error.log'), 'utf8')
      const reason = cause instanceof Error ? cause.message : cause
      throw new Error(`${kind} (${source}) did not start: ${reason}\n${lastLines(text)}`, { cause })
    }
  }

  #flags(): string[] {
    const { folder, port } = this.#place
    return [
      '--no-defaults', // must be the first
      ...userFlags(),
      ...this.#program.flags,
      `--datadir=${join(folder, 'data')}`,
      `--tmpdir=${join(folder, 'tmp')}`,
      `--socket=${join(folder, 'socket')}`,
      `--pid-file=${join(folder, 'pid')}`,
      `--port=${port}`,
      '--bind-address=127.0.0.1',
      '--max-connections=400',
      '--innodb-buffer-pool-size=256M',
      '--performance-schema=OFF',
      ...(this.#program.kind === 'mysql' ? ['--loose-mysqlx=OFF', '--secure-file-priv=NULL'] : []),
    ]
  }
}
