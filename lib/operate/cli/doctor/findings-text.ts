import { printable } from '../printable.js'
import type { Finding, Level } from './finding.js'

const LABELS: Record<Level, string> = { ok: 'ok', note: 'note', warning: 'WARNING', problem: 'PROBLEM' }
const LABEL_WIDTH = 9
const CHECK_WIDTH = 15
const LINE_WIDTH = 100

/** Findings for people: what is, and below it what to do. */
export const findingsText = (findings: readonly Finding[]): string => findings.map(findingText).join('\n')

function findingText({ check, level, found, advice, statements }: Finding): string {
  const head = LABELS[level].padEnd(LABEL_WIDTH) + check.padEnd(CHECK_WIDTH)
  const indent = ' '.repeat(LABEL_WIDTH + CHECK_WIDTH)
  const lines = [...wrap(found), ...(advice === null ? [] : wrap(advice))]
  // Statements stay as they are, so that they can be copied.
  const sql = statements.flatMap((statement) => statement.split('\n')).map((line) => `  ${line}`)
  return [
    ...lines.map((line, i) => (i === 0 ? head : indent) + line),
    ...sql.map((line) => indent + line),
  ].join('\n')
}

function wrap(text: string): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of printable(text).split(' ')) {
    if (line !== '' && line.length + 1 + word.length > LINE_WIDTH - LABEL_WIDTH - CHECK_WIDTH) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
