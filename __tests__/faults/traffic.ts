import { type ChildProcess, fork } from 'node:child_process'
import type { FromTraffic, ToTraffic, TrafficReport, TrafficRun, TrafficSetting } from './traffic-worker.js'

/** Within which a process must have ended whose store was closed, in milliseconds. */
const END_MS = 5000

/**
 * A process of its own that hits without pause: what nobody catches ends it, as it would end an application, and that
 * fails the test.
 */
export class Traffic {
  readonly #child: ChildProcess
  #stderr = ''

  private constructor(child: ChildProcess) {
    this.#child = child
    child.stderr?.on('data', (text) => {
      this.#stderr += text
    })
  }

  static async open(setting: TrafficSetting): Promise<Traffic> {
    const child = fork('__tests__/faults/traffic-worker.ts', [JSON.stringify(setting)], {
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    })
    const traffic = new Traffic(child)
    await traffic.#next()
    return traffic
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  async start(run: TrafficRun): Promise<void> {
    const started = this.#next()
    this.#send({ run })
    await started
  }

  async stop(): Promise<TrafficReport> {
    const stopped = this.#next()
    this.#send('stop')
    return ((await stopped) as { report: TrafficReport }).report
  }

  /** Closes the store, upon which the process ends by itself. */
  async end(): Promise<void> {
    const exited = new Promise<number | null>((resolve) => this.#child.once('exit', resolve))
    if (!this.isAlive) return
    this.#send('end')
    // A socket or a timer that is left would keep it alive.
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), END_MS)
    const code = await exited
    clearTimeout(timer)
    // Node.js warns of what is about to go wrong, such as listeners that pile up.
    if (code !== 0 || this.#stderr !== '') throw new Error(`the process ended with ${code}: ${this.#stderr}`)
  }

  #send(message: ToTraffic): void {
    if (this.#child.connected) this.#child.send(message)
  }

  /** What the process says next. Rejects when it ends instead. */
  #next(): Promise<FromTraffic> {
    return new Promise((resolve, reject) => {
      const exited = (code: number | null): void => {
        reject(new Error(`the process ended with ${code}: ${this.#stderr}`))
      }
      if (this.#child.exitCode !== null) exited(this.#child.exitCode)
      this.#child.once('exit', exited)
      this.#child.once('message', (message: FromTraffic) => {
        this.#child.off('exit', exited)
        resolve(message)
      })
    })
  }
}
