import { type ChildProcess, fork } from 'node:child_process'
import type { Memory, Message, Outcome, Question, Run } from './hit-process.js'
import type { Setting } from './open-subject.js'

/** A process that hits, started and connected. */
export interface HitProcess {
  readonly child: ChildProcess
  /** One run; resolves with what the process saw, or null when it was killed. */
  run(run: Run): Promise<Outcome | null>
  /** What it holds, or null when it was killed. */
  memory(): Promise<Memory | null>
  /** Ends the process in order. */
  end(): Promise<void>
  /** Ends it at once. */
  kill(): Promise<void>
}

/**
 * Starts a process and waits until it is ready.
 *
 * @throws Error when it cannot begin, with what its store said.
 */
export async function startProcess(setting: Setting): Promise<HitProcess> {
  const child = fork('__tests__/processes/hit-process.ts', {
    execArgv: ['--import', 'tsx', '--expose-gc'],
    // Not an argument, which every user of the machine can read: it has the password.
    env: { ...process.env, HIT_PROCESS_SETTING: JSON.stringify(setting) },
    serialization: 'advanced',
  })
  const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null
  const exited = new Promise<null>((resolve) => {
    child.once('error', () => resolve(null))
    child.once('exit', () => resolve(null))
  })
  /** The next message of a kind, or null when there comes none. */
  const next = async <T>(read: (message: Message) => T | undefined): Promise<T | null> => {
    let listen = (_: Message): void => {}
    const message = new Promise<T>((resolve) => {
      listen = (each) => {
        const found = read(each)
        if (found !== undefined) resolve(found)
      }
      child.on('message', listen)
    })
    const result = await Promise.race([message, exited])
    child.off('message', listen)
    return result
  }
  const ask = (question: Question): void => {
    if (child.connected) child.send(question)
  }

  const first = await next((message) => message)
  if (first === null) throw new Error('a process ended before it was ready')
  if (first !== 'ready') throw new Error('failure' in first ? first.failure : 'a process did not begin')
  return {
    child,
    run(run) {
      const outcome = next((message) =>
        isRecord(message) && 'outcome' in message ? message.outcome : undefined,
      )
      ask({ run })
      return outcome
    },
    memory() {
      const memory = next((message) =>
        isRecord(message) && 'memory' in message ? message.memory : undefined,
      )
      ask('memory')
      return memory
    },
    async end() {
      ask('end')
      await exited
    },
    async kill() {
      if (!isOver()) child.kill('SIGKILL')
      await exited
    },
  }
}

const isRecord = (message: Message): message is Exclude<Message, 'ready'> => message !== 'ready'

/** Runs the same in several processes at once, each beginning at another of so many keys. */
export async function runTogether(
  processes: readonly HitProcess[],
  { first, count, ...run }: Omit<Run, 'traffic'> & { readonly first: number; readonly count: number },
): Promise<Outcome[]> {
  const outcomes = await Promise.all(
    processes.map((process, i) => {
      const begin = Math.floor((i * count) / processes.length)
      return process.run({ ...run, traffic: { first, count, begin } })
    }),
  )
  return outcomes.map((outcome) => {
    if (outcome === null) throw new Error('a process ended without an outcome')
    return outcome
  })
}

/** Admitted hits by key, over all processes. */
export function admittedByKey(outcomes: readonly Outcome[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const { sightings } of outcomes) {
    for (const { key, outcome } of sightings) if (outcome === 'admitted') sums[key] = (sums[key] ?? 0) + 1
  }
  return sums
}

/** Codes of all decisions that the store did not make. */
export const degradedIn = (outcomes: readonly Outcome[]): string[] =>
  outcomes.flatMap(({ codes }) =>
    Object.entries(codes).flatMap(([code, times]) => new Array<string>(times).fill(code)),
  )
