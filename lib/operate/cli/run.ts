import { CommanderError } from 'commander'
import { findAddress, readAddress } from './address.js'
import type { Answer } from './answer.js'
import { EXIT, type ExitCode } from './exit-code.js'
import { explainFailure } from './explain-failure.js'
import type { Invocation } from './invocation.js'
import { openTarget } from './open-target.js'
import { jsonText } from './printable.js'
import { createProgram } from './program.js'
import { redactor } from './redactor.js'

/** What a run has of its process. */
export interface Surroundings {
  /** Behind the program's name. */
  readonly args: readonly string[]
  /** The variable DATABASE_URL. */
  readonly databaseUrl: string | undefined
  readonly version: string
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
}

/** Runs a command line, and gives what the process should end with. Prints everything itself; never rejects. */
export async function run({ args, databaseUrl, version, stdout, stderr }: Surroundings): Promise<ExitCode> {
  const redact = redactor([...args, databaseUrl ?? ''])
  // Before commander has read them: its own errors are told in the form that was asked for, too.
  const end = args.indexOf('--')
  const wantsJson = args.slice(0, end < 0 ? args.length : end).includes('--json')
  let exitCode: ExitCode = EXIT.fine
  let commandName = ''

  const answer = ({ text, json, exitCode: code }: Answer): void => {
    stdout.write(`${wantsJson ? jsonText({ command: commandName, ...json }) : text}\n`)
    exitCode = code
  }
  const urlOption = (): string | undefined => program.opts<{ url?: string }>().url
  const invocation: Invocation = {
    progress: wantsJson ? null : stderr,
    answer,
    databaseKind: () => findAddress(urlOption(), databaseUrl)?.kind ?? null,
    async onDatabase(work, { mayCreate = false, prepare = true } = {}) {
      const address = readAddress(urlOption(), databaseUrl)
      const target = await openTarget(address, mayCreate)
      try {
        if (prepare) await target.prepare()
        answer(await work(target, address))
      } finally {
        await target.close()
      }
    },
  }
  const program = createProgram(version, invocation)
  program.hook('preAction', (_, command) => {
    commandName = command.name()
  })
  for (const command of [program, ...program.commands]) {
    command.exitOverride().configureOutput({
      writeOut: (text) => stdout.write(text),
      // With --json the error is told as JSON, below.
      writeErr: (text) => {
        if (!wantsJson) stderr.write(redact(text))
      },
    })
  }

  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    // Help and the version end this way too.
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.fine
    const failure =
      error instanceof CommanderError
        ? { code: 'ERR_USAGE', message: redact(error.message), advice: null, exitCode: EXIT.usage }
        : explainFailure(error, redact)
    exitCode = failure.exitCode
    const { code, message, advice } = failure
    if (wantsJson)
      stdout.write(`${jsonText({ command: commandName || null, error: { code, message, advice } })}\n`)
    // Commander has told its own already.
    else if (!(error instanceof CommanderError)) {
      stderr.write(`express-sql-rate-limit: ${message}\n${advice === null ? '' : `  ${advice}\n`}`)
    }
  }
  return exitCode
}
