import type { Contender, Rule } from '../contenders/contender.js'
import { openPlace, type Place } from '../contenders/open-place.js'
import { type ColdKeys, coldKeysOf } from '../exactness/cold-keys.js'
import type { Context } from '../section.js'
import { drive, type Outcome } from './drive.js'
import { keysInTurn, randomKeys } from './random-keys.js'
import { takeTurns } from './take-turns.js'

/** One piece of work, the same for every contender. */
export interface Work {
  readonly label: string
  readonly callers: number
  /** How many keys there are, */
  readonly keys: number
  /** and how they begin. Works that name them alike share them. Default `client`. */
  readonly prefix?: string
}

/** Who takes part, under which conditions. */
export interface Comparison {
  readonly contenders: readonly Contender[]
  readonly rule: Rule
  readonly rounds: number
  /** How long a turn takes. */
  readonly millis: number
  /**
   * The same before the first round of each work, after a hit of every key, for compilers, caches and rows to be
   * there.
   */
  readonly warmUpMillis: number
  /** The place as a contender reaches it, when not directly. */
  readonly reach?: (place: Place, contender: Contender) => string
}

/** A contender's rounds of one work, and how exact it is. */
export interface Entry {
  readonly contender: Contender
  readonly rounds: readonly Outcome[]
  /** Admitted in warm-up and rounds together. */
  readonly admitted: number
  readonly coldKeys: ColdKeys
}

/**
 * Gives every contender the same works in turns, each contender in a place of its own, and tells a step a round.
 *
 * @returns the entries of each work, in the order of the contenders
 */
export async function compare(
  context: Context,
  comparison: Comparison,
  works: readonly Work[],
): Promise<Entry[][]> {
  const { contenders, rule, reach = (place) => place.at } = comparison
  const opened = await Promise.all(
    contenders.map(async (contender) => {
      const place = await openPlace(contender.store, context.servers)
      return { contender, place, instance: await contender.open(reach(place, contender), rule) }
    }),
  )
  try {
    const entries: Entry[][] = []
    const touched = new Set<string>()
    for (const { label, callers, keys, prefix = 'client' } of works) {
      const subjects = opened.map(({ contender, instance }) => ({
        contender,
        instance,
        nextKey: randomKeys(keys, prefix),
      }))
      const turn = ({ instance, nextKey }: (typeof subjects)[number], millis: number): Promise<Outcome> =>
        drive(instance.hit, { callers, nextKey, millis })
      const warm: number[] = []
      for (const subject of subjects) {
        const touch = { callers, nextKey: keysInTurn(keys, prefix), hits: touched.has(prefix) ? 0 : keys }
        const first = await drive(subject.instance.hit, touch)
        const then = await turn(subject, comparison.warmUpMillis)
        warm.push(first.allowed + then.allowed)
      }
      touched.add(prefix)
      const outcomes = await takeTurns(
        subjects,
        comparison.rounds,
        (subject) => turn(subject, comparison.millis),
        (round) => context.step(`${label}, round ${round} of ${comparison.rounds}`),
      )
      const ofWork: Entry[] = []
      for (const [i, { contender }] of subjects.entries()) {
        const rounds = outcomes[i] as Outcome[]
        const admitted = rounds.reduce((sum, { allowed }) => sum + allowed, warm[i] ?? 0)
        ofWork.push({ contender, rounds, admitted, coldKeys: await coldKeysOf(contender, context) })
      }
      entries.push(ofWork)
    }
    return entries
  } finally {
    await Promise.all(
      opened.map(async ({ instance, place }) => {
        await instance.close()
        await place.remove()
      }),
    )
  }
}
