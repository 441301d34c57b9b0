import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { drawBars } from './draw-bars.js'
import { drawPlot } from './draw-plot.js'
import { markdownReport } from './markdown.js'
import { type Results, writeResults } from './results.js'

const REPORT_FILE = 'docs/benchmarks.md'
const PLOTS_FOLDER = 'docs/plots'

/** Writes the results, the report and its plots. Paths are from the project's root. */
export async function writeReport(results: Results, order: readonly string[]): Promise<void> {
  await writeResults(results)
  await writeFile(REPORT_FILE, markdownReport(results, order))
  await mkdir(PLOTS_FOLDER, { recursive: true })
  for (const { findings } of Object.values(results.sections)) {
    for (const plot of findings.plots) {
      const svg = 'bars' in plot ? drawBars(plot) : drawPlot(plot)
      await writeFile(join(PLOTS_FOLDER, `${plot.id}.svg`), svg)
    }
  }
}
