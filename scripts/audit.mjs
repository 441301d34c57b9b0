// Asks the registry for known vulnerabilities of what the package brings into an application, and ends with 1 when one
// of them is high or critical. A registry that cannot be asked is said plainly and fails nothing.
import { spawnSync } from 'node:child_process'

const { stdout, stderr } = spawnSync('npm', ['audit', '--omit=dev', '--json', '--fetch-retries=0'], {
  encoding: 'utf8',
  shell: process.platform === 'win32',
  timeout: 60_000,
})

/** The report, or null when npm printed none. */
function readReport(text) {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const report = readReport(stdout)
const counts = report?.metadata?.vulnerabilities
if (counts === undefined) {
  const reason = report?.message ?? stderr.trim().split('\n')[0]
  console.log(`NOT AUDITED: the registry's audit endpoint is not reachable (${reason || 'no answer'}).`)
} else {
  const { high, critical, total } = counts
  for (const { name, severity, range } of Object.values(report.vulnerabilities)) {
    console.log(`${severity}: ${name} ${range}`)
  }
  const serious = high + critical
  console.log(
    `Audit of the production dependencies: ${total} vulnerable, ${serious} of them high or critical.`,
  )
  process.exitCode = serious > 0 ? 1 : 0
}
