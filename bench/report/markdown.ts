import type { Bars, Plot, Table, Target } from '../section.js'
import { number } from './number.js'
import type { Measured, Results } from './results.js'

const HEAD = `# Benchmarks

Measured by \`npm run bench\`, which writes this file. It starts MySQL, MariaDB and Redis of its own, with the durable
settings they have by default, and runs us and the others in turn, round by round, in one run on one machine.

**Read ratios, not figures.** Client and servers share the cores, so absolute figures say as much about the machine
as about the code. What holds elsewhere is how two rows of one table compare. Figures are medians over the rounds;
the spread behind them is the lowest and the highest round.

To repeat: \`npm ci && npm run bench\` (ten minutes, on a machine that does nothing else), or \`npm run bench -- --quick\`
for a first look. [bench/README.md](../bench/README.md) says what each section measures and how fair it is.
`

/** The whole report; the sections in this order. */
export function markdownReport(results: Results, order: readonly string[]): string {
  const sections = order.map((id) => results.sections[id]).filter((section) => section !== undefined)
  return `${[HEAD, machineText(results), targetsText(sections), ...sections.map(markdownSection)].join('\n')}`
}

function machineText({ quick, machine }: Results): string {
  const { servers, durability } = machine
  const settings = (values: Readonly<Record<string, string>>): string =>
    Object.entries(values)
      .map(([name, value]) => `${name}=${value}`)
      .join(', ')
  const mode = quick
    ? '\n**A quick run**: few and short rounds, so the spread is wide. Take it for a first look.\n'
    : ''
  return `## Machine
${mode}
${machine.cores} cores (${machine.cpu}), ${machine.memoryGigabytes} GB, ${machine.platform}, Node.js ${machine.node}

- MySQL ${servers.mysql}: ${settings(durability.mysql)}
- MariaDB ${servers.mariadb}: ${settings(durability.mariadb)}
- Redis ${servers.redis}: its default configuration
`
}

/** All targets in one table; empty when there are none. */
export function targetsText(sections: readonly Measured[]): string {
  const rows = sections.flatMap(({ findings }) => findings.targets.map((target) => targetRow(target)))
  if (rows.length === 0) return ''
  return `## Targets\n\n${tableText({ title: '', columns: ['what', 'wanted', 'measured', ''], rows })}`
}

/** A target as a row: what, wanted, measured, whether it was met. */
export function targetRow({ what, value, atLeast, atMost }: Target): string[] {
  const wanted = [
    ...(atLeast === undefined ? [] : [`≥ ${number(atLeast)}`]),
    ...(atMost === undefined ? [] : [`≤ ${number(atMost)}`]),
  ].join(', ')
  const met = (atLeast === undefined || value >= atLeast) && (atMost === undefined || value <= atMost)
  return [what, wanted, number(value), met ? 'met' : '**missed**']
}

/** A section: what was done, tables and plots. */
export function markdownSection({ measuredAt, loadBefore, findings }: Measured): string {
  const { title, text, tables, plots } = findings
  const parts = [
    `## ${title}\n`,
    `${text}\n`,
    `Measured ${measuredAt.slice(0, 10)}; load average of the machine before that run: ${number(loadBefore)}.\n`,
  ]
  return [...parts, ...tables.map(tableText), ...plots.map(plotText)].join('\n')
}

/** A Markdown table, figures to the right, under its title. */
export function tableText({ title, columns, rows, note }: Table): string {
  const right = columns.map(
    (_, i) => i > 0 && rows.every((row) => /^[\s\d<–-]/.test(row[i] ?? '') || !row[i]),
  )
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`
  return [
    ...(title === '' ? [] : [`### ${title}`, '']),
    line(columns),
    `| ${right.map((isRight) => (isRight ? '---:' : '---')).join(' | ')} |`,
    ...rows.map(line),
    ...(note === undefined ? [] : ['', note]),
    '',
  ].join('\n')
}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

const plotText = ({ id, title }: Plot | Bars): string => `![${title}](plots/${id}.svg)\n`
