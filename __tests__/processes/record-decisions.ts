import type { Batch, Refund, Store, Verdict } from '../../lib/stores/store.js'

/** Is told what a store is asked, before it is, and what it says. What it returns is what it calls the question by. */
export interface Recorder<Question> {
  decideAsked?(batch: Batch): Question
  decided?(batch: Batch, verdicts: readonly Verdict[], question: Question | undefined): void
  refundAsked?(refunds: readonly Refund[]): Question
  resetAsked?(keys: readonly string[]): Question
  /** The store has answered one of the three, or has failed. */
  done?(question: Question | undefined, isFailed: boolean): void
}

/** The same store, with a recorder beside it. */
export function recordDecisions<Question>(store: Store, recorder: Recorder<Question>): Store {
  const between = async <T>(question: Question | undefined, work: () => Promise<T>): Promise<T> => {
    try {
      const result = await work()
      recorder.done?.(question, false)
      return result
    } catch (error) {
      recorder.done?.(question, true)
      throw error
    }
  }
  return {
    get isCrowded() {
      return store.isCrowded === true
    },
    install: () => store.install(),
    peek: (charges, signal) => store.peek(charges, signal),
    refund: (refunds, signal) =>
      between(recorder.refundAsked?.(refunds), () => store.refund(refunds, signal)),
    block: (charge, micros, signal) => store.block(charge, micros, signal),
    reset: (keys) => between(recorder.resetAsked?.(keys), () => store.reset(keys)),
    probe: (signal, keys) => store.probe(signal, keys),
    sweep: () => store.sweep(),
    close: () => store.close(),
    decide(batch, signal) {
      const question = recorder.decideAsked?.(batch)
      return between(question, async () => {
        const verdicts = await store.decide(batch, signal)
        recorder.decided?.(batch, verdicts, question)
        return verdicts
      })
    },
  }
}
