import { setTimeout as sleep } from 'node:timers/promises'

/** Between two turns, in milliseconds: what the one left to flush or purge shall not slow down the other. */
const PAUSE_MS = 50

/**
 * Runs all subjects once a round, each round beginning with another one, so that none always follows the same.
 *
 * @returns the outcomes of each subject, in the order of the rounds
 */
export async function takeTurns<Subject, Outcome>(
  subjects: readonly Subject[],
  rounds: number,
  run: (subject: Subject) => Promise<Outcome>,
  afterRound: (round: number) => void,
): Promise<Outcome[][]> {
  const outcomes: Outcome[][] = subjects.map(() => [])
  for (let round = 0; round < rounds; round += 1) {
    for (let i = 0; i < subjects.length; i += 1) {
      const turn = (i + round) % subjects.length
      await sleep(PAUSE_MS)
      outcomes[turn]?.push(await run(subjects[turn] as Subject))
    }
    afterRound(round + 1)
  }
  return outcomes
}
