import { parseArgs } from 'node:util'
import type { Section } from './section.js'

/** What a run of the benchmark was asked to do. */
export interface BenchOptions {
  readonly help: boolean
  readonly quick: boolean
  /** In the order in which the benchmark lists them. */
  readonly sections: readonly Section[]
}

/**
 * Reads the command line.
 *
 * @throws TypeError for an unknown option, and for a section that does not exist.
 */
export function parseOptions(args: readonly string[], sections: readonly Section[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      quick: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
    },
  })
  const wanted = values.only.flatMap((list) => list.split(',')).map((id) => id.trim())
  for (const id of wanted) {
    if (sections.every((section) => section.id !== id)) {
      const ids = sections.map((section) => section.id).join(', ')
      throw new TypeError(`Expected --only to list sections (${ids}), got \`${id}\``)
    }
  }
  return {
    help: values.help,
    quick: values.quick,
    sections: wanted.length === 0 ? sections : sections.filter(({ id }) => wanted.includes(id)),
  }
}

/** What `--help` prints. */
export function helpText(sections: readonly Section[]): string {
  const width = Math.max(...sections.map(({ id }) => id.length))
  return `npm run bench -- [--quick] [--only <section>[,<section>…]]

  --quick   about a minute for everything instead of ten: fewer and shorter rounds, smaller sizes
  --only    some sections; the others stay in the results as they were measured before
  --help    this text

Sections:
${sections.map(({ id, title }) => `  ${id.padEnd(width)}  ${title}`).join('\n')}

Starts servers of its own on 127.0.0.1 and removes them. Writes bench/results/latest.json, docs/benchmarks.md and
docs/plots/. Ends with 1 only for an error: a missed target is a measurement.
`
}
