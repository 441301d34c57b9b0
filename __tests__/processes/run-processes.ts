import { type ChildProcess, fork } from 'node:child_process'
import type { Message, Outcome, Run, Setting } from './hit-worker.js'

/** A process that hits, started and connected. */
export interface HitProcess {
  readonly child: ChildProcess
  /** One run; resolves with what the process saw, or null when it was killed. */
  run(run: Run): Promise<Outcome | null>
  /** Ends the process in order. */
  end(): Promise<void>
}

/** Starts a process and waits until it is ready. */
export function startProcess(setting: Setting): Promise<HitProcess> {
  const child = fork('__tests__/processes/hit-worker.ts', [JSON.stringify(setting)], {
    execArgv: ['--import', 'tsx'],
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the process ended with ${code} before it was ready`)))
    child.once('message', () => resolve({ child, run: (run) => runIn(child, run), end: () => endOf(child) }))
  })
}

function runIn(child: ChildProcess, run: Run): Promise<Outcome | null> {
  return new Promise((resolve) => {
    const exited = (): void => resolve(null)
    child.once('exit', exited)
    child.once('message', (message: Message) => {
      child.off('exit', exited)
      if ('outcome' in message) resolve(message.outcome)
    })
    child.send(run)
  })
}

function endOf(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    child.once('exit', () => resolve())
    child.send('end')
  })
}

/** Runs the same in several processes at once, each beginning at another key. */
export async function runTogether(
  processes: readonly HitProcess[],
  run: Omit<Run, 'begin'>,
): Promise<Outcome[]> {
  const outcomes = await Promise.all(
    processes.map((process, i) =>
      process.run({ ...run, begin: Math.floor((i * run.count) / processes.length) }),
    ),
  )
  return outcomes.map((outcome) => {
    if (outcome === null) throw new Error('a process ended without an outcome')
    return outcome
  })
}

/** Admitted hits by key, over all processes. */
export function admittedByKey(outcomes: readonly Outcome[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const { admitted } of outcomes) {
    for (const [key, count] of Object.entries(admitted)) sums[key] = (sums[key] ?? 0) + count
  }
  return sums
}

/** Codes of all decisions that the store did not make. */
export const degradedIn = (outcomes: readonly Outcome[]): string[] =>
  outcomes.flatMap(({ degraded }) => degraded)
