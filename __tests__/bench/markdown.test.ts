import { markdownReport, tableText, targetRow } from '../../bench/report/markdown.js'
import { number } from '../../bench/report/number.js'
import type { Results } from '../../bench/report/results.js'

test('figures have as many digits as they deserve', () => {
  expect([123_456.7, 120, 12.345, 6, 0.354, 0.01234, Number.NaN].map(number)).toEqual([
    '123,457',
    '120',
    '12.3',
    '6',
    '0.35',
    '0.0123',
    '–',
  ])
})

test('a target says what was wanted and whether it was met', () => {
  expect(targetRow({ what: 'a', value: 6, atLeast: 6 })).toEqual(['a', '≥ 6', '6', 'met'])
  expect(targetRow({ what: 'b', value: 5.9, atLeast: 6 })).toEqual(['b', '≥ 6', '5.90', '**missed**'])
  expect(targetRow({ what: 'c', value: 1.31, atMost: 1.3 })).toEqual(['c', '≤ 1.30', '1.31', '**missed**'])
  expect(targetRow({ what: 'd', value: 100, atLeast: 100, atMost: 100 })[3]).toBe('met')
  // Nothing was measured.
  expect(targetRow({ what: 'e', value: Number.NaN, atMost: 1 })[3]).toBe('**missed**')
})

test('a table aligns figures to the right and escapes what would end a cell', () => {
  const table = {
    title: 'Rates',
    columns: ['who', 'per second', 'exact'],
    rows: [['a|b', '1,234', 'exactly 100']],
  }
  expect(tableText(table)).toBe(
    '### Rates\n\n| who | per second | exact |\n| --- | ---: | --- |\n| a\\|b | 1,234 | exactly 100 |\n',
  )
})

test('the report has the sections in order, with their plots, and all targets together', () => {
  const section = (id: string) => ({
    measuredAt: '2026-01-02T03:04:05.678Z',
    loadBefore: 0.25,
    findings: {
      id,
      title: `Title of ${id}`,
      text: 'Text.',
      tables: [],
      plots: [{ id: `${id}-plot`, title: 'Plot', xLabel: 'x', yLabel: 'y', series: [] }],
      targets: [{ what: `target of ${id}`, value: 1, atLeast: 2 }],
      raw: null,
    },
  })
  const durability = { mysql: { sync_binlog: '1' }, mariadb: { sync_binlog: '0' } }
  const results: Results = {
    quick: true,
    machine: {
      cpu: 'cpu',
      cores: 2,
      memoryGigabytes: 4,
      platform: 'linux x64',
      node: 'v20',
      servers: { mysql: '9.7', mariadb: '10.11', redis: '7.0' },
      durability,
    },
    sections: { second: section('second'), first: section('first') },
  }
  const report = markdownReport(results, ['first', 'absent', 'second'])
  expect(report.match(/^## .*/gm)).toEqual([
    '## Machine',
    '## Targets',
    '## Title of first',
    '## Title of second',
  ])
  expect(report).toContain('- MySQL 9.7: sync_binlog=1')
  expect(report).toContain('**A quick run**')
  expect(report).toContain('| target of second | ≥ 2 | 1 | **missed** |')
  expect(report).toContain('Measured 2026-01-02; load average of the machine before that run: 0.25.')
  expect(report).toContain('![Plot](plots/first-plot.svg)')
})
