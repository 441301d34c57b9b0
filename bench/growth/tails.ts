import { ratioOf, spreadOf } from '../load/spread.js'
import { number } from '../report/number.js'
import type { Plot, Table, Target } from '../section.js'

/** The same hits in quiet and under a disturbance. */
export interface Disturbed {
  /** `MySQL` */
  readonly name: string
  /** For each round, what every hit took, in milliseconds. */
  readonly quiet: readonly (readonly number[])[]
  readonly disturbed: readonly (readonly number[])[]
  /** More cells of its row. */
  readonly cells?: readonly string[]
}

interface Description {
  readonly id: string
  readonly title: string
  /** What disturbs: `while a sweep runs` */
  readonly disturbance: string
  /** How often slower the 99th percentile may be. */
  readonly atMost: number
  /** Headings of `cells`. */
  readonly columns?: readonly string[]
  readonly note: string
}

const PERCENTILES = [50, 75, 90, 95, 98, 99, 99.5]

/** Decision times in quiet and under a disturbance, as a table, a plot over the percentiles, and the ratios of p99. */
export function describeTails(
  { id, title, disturbance, atMost, columns = [], note }: Description,
  all: readonly Disturbed[],
): { table: Table; plot: Plot; targets: readonly Target[]; raw: unknown } {
  const curve = (rounds: Disturbed['quiet']) =>
    PERCENTILES.map((percentile) => [percentile, spreadOf(percentiles(rounds, percentile)).median] as const)
  return {
    table: {
      title,
      columns: [
        '',
        'p50 in quiet',
        `p50 ${disturbance}`,
        'p99 in quiet',
        `p99 ${disturbance}`,
        'p99 ratio',
        ...columns,
      ],
      rows: all.map(({ name, quiet, disturbed, cells = [] }) => [
        name,
        cell(quiet, 50),
        cell(disturbed, 50),
        cell(quiet, 99),
        cell(disturbed, 99),
        number(ratio({ quiet, disturbed })),
        ...cells,
      ]),
      note,
    },
    plot: {
      id,
      title,
      xLabel: 'percentile of the decisions',
      yLabel: 'milliseconds per decision',
      series: all.flatMap(({ name, quiet, disturbed }) => [
        { name: `${name}, in quiet`, points: curve(quiet) },
        { name: `${name}, ${disturbance}`, points: curve(disturbed) },
      ]),
    },
    targets: all.map(({ name, quiet, disturbed }) => ({
      what: `${name}: p99 ${disturbance}, to p99 in quiet`,
      value: ratio({ quiet, disturbed }),
      atMost,
    })),
    raw: all.map(({ name, quiet, disturbed }) => ({
      name,
      quiet: curve(quiet),
      disturbed: curve(disturbed),
    })),
  }
}

/** That of each round. */
function percentiles(rounds: Disturbed['quiet'], percentile: number): number[] {
  return rounds.map((times) => {
    const sorted = Float64Array.from(times).sort()
    return sorted[Math.floor(sorted.length * (percentile / 100))] ?? Number.NaN
  })
}

const ratio = ({ quiet, disturbed }: Pick<Disturbed, 'quiet' | 'disturbed'>): number =>
  ratioOf(percentiles(disturbed, 99), percentiles(quiet, 99))

function cell(rounds: Disturbed['quiet'], percentile: number): string {
  const { median, lowest, highest } = spreadOf(percentiles(rounds, percentile))
  return `${number(median)} (${number(lowest)}–${number(highest)})`
}
