import { coldKeysText } from '../exactness/cold-keys.js'
import { number } from '../report/number.js'
import type { Bars, Table } from '../section.js'
import type { Entry } from './compare.js'
import type { Outcome } from './drive.js'
import { ratioOf, type Spread, spreadOf } from './spread.js'

/** The figure that matters for a piece of work. */
export interface Measure {
  readonly name: string
  readonly of: (outcome: Outcome) => number
}

/** Decisions a second. */
export const RATE: Measure = { name: 'decisions/s', of: ({ perSecond }) => perSecond }
/** The median time from a hit to its answer. */
export const P50: Measure = { name: 'p50, ms', of: ({ p50 }) => p50 }

/** A measure over the rounds of an entry. */
export const measured = (entry: Entry, { of }: Measure): number[] => entry.rounds.map(of)

/** Compares the entries of one piece of work: the measure, its spread, its ratio to the first entry, and exactness. */
export function entryTable(title: string, entries: readonly Entry[], measure: Measure, note?: string): Table {
  const [first] = entries
  const p99: Measure = { name: 'p99, ms', of: (outcome) => outcome.p99 }
  const rows = entries.map((entry) => {
    const values = measured(entry, measure)
    return [
      entry.contender.name,
      number(spreadOf(values).median),
      spreadText(spreadOf(values)),
      first === undefined ? '' : number(ratioOf(values, measured(first, measure))),
      number(spreadOf(measured(entry, p99)).median),
      coldKeysText(entry.coldKeys),
      troubles(entry),
    ]
  })
  const columns = [
    'contender',
    measure.name,
    'lowest–highest',
    '× first',
    p99.name,
    'admits of 100',
    'errors',
  ]
  return { title, columns, rows, ...(note === undefined ? {} : { note }) }
}

/** The medians of one piece of work as bars. */
export function entryBars(id: string, title: string, entries: readonly Entry[], measure: Measure): Bars {
  const bars = entries.map((entry) => ({
    name: entry.contender.name,
    value: spreadOf(measured(entry, measure)).median,
  }))
  return { id, title, valueLabel: measure.name, bars }
}

const spreadText = ({ lowest, highest }: Spread): string => `${number(lowest)}–${number(highest)}`

function troubles({ rounds }: Entry): string {
  const errors = rounds.reduce((sum, outcome) => sum + outcome.errors, 0)
  const error = rounds.find((outcome) => outcome.error !== undefined)?.error
  return errors === 0 ? '0' : `${errors} (${error})`
}

/** What is kept of entries in the results. */
export const rawEntries = (entries: readonly Entry[]): unknown =>
  entries.map(({ contender, ...rest }) => ({
    contender: contender.name,
    store: contender.store,
    algorithm: contender.algorithm,
    configuration: contender.configuration,
    ...rest,
  }))
