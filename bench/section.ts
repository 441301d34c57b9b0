import type { PrivateServer } from '../__tests__/servers/server.js'

/** The servers of one run, started for it and removed after it, with their default, durable settings. */
export interface Servers {
  readonly mysql: PrivateServer
  readonly mariadb: PrivateServer
  /** Debian's redis-server with its default configuration. */
  readonly redis: { readonly uri: string; readonly version: string }
}

/** What a section of the benchmark is given. */
export interface Context {
  /** One minute for everything instead of ten: fewer rounds, shorter ones, smaller sizes. */
  readonly quick: boolean
  readonly servers: Servers
  /** Says that one of the steps a section announced is done. */
  step(label: string): void
}

/** A table of figures: cells are printed as they are. */
export interface Table {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** What must be known to read it: configuration, what the spread is, who over-admits. */
  readonly note?: string
}

/** A plot, drawn as SVG. */
export interface Plot {
  /** File name without ending: `rows-in-window`. */
  readonly id: string
  readonly title: string
  readonly xLabel: string
  readonly yLabel: string
  /** Logarithmic axes, where sizes grow by factors. */
  readonly logX?: boolean
  readonly logY?: boolean
  readonly series: readonly {
    readonly name: string
    readonly points: readonly (readonly [number, number])[]
  }[]
}

/** A plot of figures to compare with each other, drawn as SVG: one bar each. */
export interface Bars {
  /** File name without ending. */
  readonly id: string
  readonly title: string
  /** What the length of a bar means. */
  readonly valueLabel: string
  /** From the top. */
  readonly bars: readonly { readonly name: string; readonly value: number }[]
  /** A logarithmic axis, where factors are large. */
  readonly log?: boolean
}

/** A ratio inside this run, beside what it should be. */
export interface Target {
  readonly what: string
  /** The measured ratio, or count. */
  readonly value: number
  readonly atLeast?: number
  readonly atMost?: number
}

/** What a section found out. */
export interface Findings {
  readonly id: string
  readonly title: string
  /** A paragraph in Markdown: what was done, and how fair it is. */
  readonly text: string
  readonly tables: readonly Table[]
  readonly plots: readonly (Plot | Bars)[]
  readonly targets: readonly Target[]
  /** Everything measured, for `results/latest.json`. */
  readonly raw: unknown
}

/** One part of the benchmark. */
export interface Section {
  readonly id: string
  readonly title: string
  /** How many steps it will report, for the progress bar. */
  steps(quick: boolean): number
  run(context: Context): Promise<Findings>
}
