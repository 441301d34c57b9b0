import type { Message } from './start-child.js'

/** Answers what the parent asks, until it ends. For scripts that `startChild` starts. */
export function answerParent<Question, Answer>(answer: (question: Question) => Promise<Answer>): void {
  process.on('message', (question: Question) => {
    answer(question).then(
      (value) => send({ answer: value }),
      (error) => send({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    )
  })
  // A parent that is gone asks nothing more.
  process.once('disconnect', () => process.exit())
}

function send(message: Message<unknown>): void {
  process.send?.(message)
}
