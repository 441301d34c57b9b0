import { spawn } from 'node:child_process'
import type { Guard } from './create-guard.js'
import { lastLines } from './last-lines.js'

/** How to run a command. */
export interface CommandOptions {
  /** Text for its standard input. */
  readonly input?: string
  /** Kills the command should this process end first. For commands that run for seconds. */
  readonly guard?: Guard
}

/**
 * Runs a command to its end and returns its standard output. Rejects with the end of its output when it
 * fails.
 */
export async function runCommand(
  command: readonly string[],
  { input = '', guard }: CommandOptions = {},
): Promise<string> {
  const [program = '', ...args] = command
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      detached: guard !== undefined,
      env: { ...process.env, LC_ALL: 'C' },
    })
    let output = ''
    let everything = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
      everything += chunk
    })
    child.stderr.on('data', (chunk) => {
      everything += chunk
    })
    child.stdin.on('error', () => {}) // it ended without reading its input: the exit code tells more than EPIPE
    child.stdin.end(input)
    if (child.pid !== undefined) guard?.watch(child.pid)
    child.once('error', reject)
    child.once('close', (code, signal) => {
      guard?.watch(undefined)
      if (code === 0) resolve(output)
      else
        reject(
          new Error(`${program} ${args[0] ?? ''} ended with ${signal ?? code}:\n${lastLines(everything)}`),
        )
    })
  })
}
