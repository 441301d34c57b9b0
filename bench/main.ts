import { loadavg } from 'node:os'
import { describeMachine } from './machine.js'
import { helpText, parseOptions } from './options.js'
import { showProgress } from './progress.js'
import { markdownSection, targetsText } from './report/markdown.js'
import { readResults, withFindings } from './report/results.js'
import { writeReport } from './report/write-report.js'
import { sections as allSections } from './sections/index.js'
import { startServers } from './servers/start-servers.js'

async function main(): Promise<void> {
  const { help, quick, sections } = parseOptions(process.argv.slice(2), allSections)
  if (help) return void process.stdout.write(helpText(allSections))
  // What is measured is what is published: `dist`, not `lib`.
  const subject = import.meta.resolve('express-sql-rate-limit')
  if (!subject.endsWith('/dist/esm/index.js')) throw new Error(`Expected the built package, got ${subject}`)

  const [loadBefore = 0] = loadavg()
  const order = allSections.map(({ id }) => id)
  const progress = showProgress(sections.reduce((sum, section) => sum + section.steps(quick), 0))
  const servers = await startServers()
  const interrupt = (): void => {
    void servers.stop().finally(() => process.exit(130))
  }
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt)
  try {
    let results = await readResults(quick, await describeMachine(servers))
    for (const section of sections) {
      progress.section(section.title)
      const findings = await section.run({ quick, servers, step: progress.step })
      results = withFindings(results, loadBefore, findings)
      await writeReport(results, order) // after each, so that an error in a later one loses nothing
    }
    progress.end()
    const measured = sections.map(({ id }) => results.sections[id]).filter((section) => section !== undefined)
    process.stdout.write([...measured.map(markdownSection), targetsText(measured)].join('\n'))
  } finally {
    progress.end()
    await servers.stop()
  }
}

main().catch((error) => {
  console.error(error instanceof TypeError ? error.message : error)
  process.exitCode = 1
})
