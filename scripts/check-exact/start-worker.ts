import { fork } from 'node:child_process'
import type { Account, Report, Work } from './worker.js'

/** A process that is ready to hit. */
export interface Worker {
  /** Hits, and resolves with what it saw. */
  run(): Promise<Account>
  kill(): void
  readonly ended: Promise<unknown>
}

/** @throws Error when the process cannot begin, with what the store said. */
export async function startWorker(work: Work): Promise<Worker> {
  const child = fork('scripts/check-exact/worker.ts', {
    execArgv: ['--import', 'tsx'],
    // Not an argument, which every user of the machine can read: it has the password.
    env: { ...process.env, CHECK_EXACT_WORK: JSON.stringify(work) },
    serialization: 'advanced',
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const next = (): Promise<Report> =>
    new Promise((resolve, reject) => {
      const died = (): void => reject(new Error('a process ended before it had told what it saw'))
      child.once('exit', died)
      child.once('message', (report: Report) => {
        child.off('exit', died)
        resolve(report)
      })
    })
  const first = await next()
  if (first !== 'ready') throw new Error('failure' in first ? first.failure : 'a process did not begin')
  return {
    async run() {
      const report = next()
      child.send('begin')
      const told = await report
      if (typeof told === 'string' || !('account' in told)) throw new Error('a process told nothing')
      return told.account
    },
    kill: () => child.kill('SIGKILL'),
    ended,
  }
}
