import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** A process of its own that answers questions, one at a time. */
export interface Child<Question, Answer> {
  /** Rejects when the process fails, or ends before it has answered. */
  ask(question: Question): Promise<Answer>
  /** Ends the process. */
  end(): Promise<void>
}

/** What a child sends. */
export type Message<Answer> = { readonly answer: Answer } | { readonly error: string }

/**
 * Starts a script that calls `answerParent`, with the loaders of this process.
 *
 * @param script - its address, as `new URL('./hits.ts', import.meta.url)` gives it
 * @param flags - more options for Node.js
 */
export function startChild<Question, Answer>(
  script: URL,
  flags: readonly string[] = [],
): Child<Question, Answer> {
  const child = fork(fileURLToPath(script), [], { execArgv: [...process.execArgv, ...flags] })
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code, signal) => resolve(`it ended with ${signal ?? code}`))
  })
  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        child.once('message', (message: Message<Answer>) => {
          if ('answer' in message) resolve(message.answer)
          else reject(new Error(`${script.pathname}: ${message.error}`))
        })
        void exited.then((reason) => reject(new Error(`${script.pathname}: ${reason}`)))
        child.send(question as object)
      }),
    async end() {
      child.kill('SIGKILL') // what it holds is its parent's to remove
      await exited
    },
  }
}
