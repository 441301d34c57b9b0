import { ratioOf, spreadOf } from '../load/spread.js'
import { number } from '../report/number.js'
import type { Plot, Table, Target } from '../section.js'

/** What was measured of one thing at every size. */
export interface Curve {
  /** `MySQL, admitted` */
  readonly name: string
  /** By size: a figure of each round, all in the same order of rounds. */
  readonly rounds: ReadonlyMap<number, readonly number[]>
}

/** The curve of those cases that are of it: what is told of each of their turns, by size. */
export function curveOf<Case extends { readonly size: number }, Turn>(
  name: string,
  cases: readonly Case[],
  turns: readonly (readonly Turn[])[],
  isOfIt: (each: Case) => boolean,
  figure: (turn: Turn) => number,
): Curve {
  const rounds = cases.flatMap((each, i) =>
    isOfIt(each) ? [[each.size, (turns[i] ?? []).map(figure)] as const] : [],
  )
  return { name, rounds: new Map(rounds) }
}

/** What a set of curves shows. */
export interface Curves {
  readonly table: Table
  readonly plot: Plot
  readonly targets: readonly Target[]
  readonly raw: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>
}

interface Description {
  readonly id: string
  readonly title: string
  /** What grows: `rows in the window` */
  readonly xLabel: string
  /** How often slower the largest size may be than the smallest. */
  readonly atMost: number
  readonly note: string
}

/** Decision times, in milliseconds, as a table, a plot, and how they grow from the smallest to the largest size. */
export function describeCurves(
  { id, title, xLabel, atMost, note }: Description,
  curves: readonly Curve[],
): Curves {
  const sizes = [...(curves[0]?.rounds.keys() ?? [])]
  return {
    table: {
      title,
      columns: [`ms a decision; ${xLabel}:`, ...sizes.map(number), 'last to first'],
      rows: curves.map(({ name, rounds }) => [
        name,
        ...sizes.map((size) => cell(rounds.get(size) ?? [])),
        number(growth(rounds)),
      ]),
      note,
    },
    plot: {
      id,
      title,
      xLabel,
      yLabel: 'milliseconds per decision (median)',
      logX: true,
      series: curves.map(({ name, rounds }) => ({
        name,
        points: sizes.map((size) => [size, spreadOf(rounds.get(size) ?? []).median] as const),
      })),
    },
    targets: curves.map(({ name, rounds }) => ({
      what: `${name}: decision time, ${xLabel} ${number(sizes.at(-1) ?? 0)} to ${number(sizes[0] ?? 0)}`,
      value: growth(rounds),
      atMost,
    })),
    raw: Object.fromEntries(curves.map(({ name, rounds }) => [name, Object.fromEntries(rounds)])),
  }
}

/** The largest size against the smallest. */
function growth(rounds: Curve['rounds']): number {
  const all = [...rounds.values()]
  return ratioOf(all.at(-1) ?? [], all[0] ?? [])
}

function cell(values: readonly number[]): string {
  const { median, lowest, highest } = spreadOf(values)
  return `${number(median)} (${number(lowest)}–${number(highest)})`
}
