import { setTimeout as delay } from 'node:timers/promises'
import { MysqlStore } from '../../../stores/mysql/mysql-store.js'
import { StoreError } from '../../../stores/store-error.js'
import type { Address } from '../address.js'
import type { MysqlTarget } from '../open-mysql-target.js'
import type { SqliteTarget } from '../open-sqlite-target.js'
import { checkClock, checkFuture } from './check-clock.js'
import { checkCluster } from './check-cluster.js'
import { checkConnections } from './check-connections.js'
import { checkJournal, fileChecks } from './check-file.js'
import { checkDecision, checkRoundTrip } from './check-latency.js'
import { checkPrivileges } from './check-privileges.js'
import { checkRows } from './check-rows.js'
import { checkSchema } from './check-schema.js'
import { checkServer } from './check-server.js'
import { type Finding, note, ok } from './finding.js'
import { type MysqlFacts, mysqlFacts, serverName } from './mysql-facts.js'

/** What a database was found to be. */
export interface Examination {
  /** Its kind and version. */
  readonly server: string
  readonly findings: readonly Finding[]
}

/** One check, or several that belong together. */
type Check = () => Finding | Finding[] | Promise<Finding | Finding[]>

/** Runs checks one after the other. One that cannot be done says so, and the next goes on. */
async function runChecks(checks: Readonly<Record<string, Check>>): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const [name, check] of Object.entries(checks)) {
    try {
      findings.push(...[await check()].flat())
    } catch (error) {
      if (isLost(error)) throw error
      const { message } = error as Error
      findings.push(
        note(
          name,
          `This could not be checked: ${message}`,
          'Often a privilege is missing, or a finding above is the reason.',
        ),
      )
    }
  }
  return findings
}

/** Whether the server is gone, so that nothing more can be checked. */
const isLost = (error: unknown): boolean =>
  error instanceof StoreError &&
  error.code === 'ERR_STORE_CONNECTION' &&
  (error.cause as { fatal?: unknown } | undefined)?.fatal === true

const fits = (findings: readonly Finding[]): boolean =>
  findings.every(({ check, level }) => check !== 'schema' || level !== 'problem')

/** @param mayWrite - whether decisions are made, on a key that is removed again */
export async function examineMysql(
  target: MysqlTarget,
  address: Address & { kind: 'mysql' },
  mayWrite: boolean,
): Promise<Examination> {
  const { reader } = target
  const facts = await mysqlFacts(reader.query)
  const findings = await runChecks({
    server: () => checkServer(facts),
    clock: () => checkClock(reader, facts.global.get('init_connect') ?? ''),
    time_zone: () => timeZone(facts),
    connections: () =>
      checkConnections(
        facts,
        address.uris.map((uri) => new URL(uri).hostname),
      ),
    cluster: () => checkCluster(facts),
    privileges: () => checkPrivileges(facts),
    schema: () => checkSchema(target),
    round_trip: () => checkRoundTrip(reader),
  })
  if (fits(findings)) {
    await target.prepare()
    findings.push(
      ...(await runChecks({ rows: () => checkRows(target), clock_steps: () => checkFuture(reader) })),
    )
    // As the application does it, on connections of the store's own. Ours goes first: there may be no second.
    await target.close()
    if (mayWrite) findings.push(...(await runChecks({ decision: () => decisions(address.uri) })))
  }
  return { server: serverName(facts), findings }
}

function timeZone({ session }: MysqlFacts): Finding {
  const zone = session.get('time_zone') ?? ''
  const name = zone === 'SYSTEM' ? `the machine's, ${session.get('system_time_zone') ?? 'unknown'}` : zone
  return ok('time_zone', `The server's is ${name}; any is fine, since the limiter counts in UTC.`)
}

async function decisions(uri: string): Promise<Finding> {
  const store = new MysqlStore({ uri, install: false, sweepSeconds: false })
  try {
    // Where one connection is all there is, the server may still count the one that was closed.
    for (let tries = 0; ; tries += 1) {
      const found = await checkDecision(store)
      if (tries === 5 || !found.found.includes('ERR_STORE_CAPACITY')) return found
      await delay(200)
    }
  } finally {
    await store.close()
  }
}

/** @param mayWrite - whether decisions are made, on a key that is removed again */
export async function examineSqlite(target: SqliteTarget, mayWrite: boolean): Promise<Examination> {
  const { reader, filename, store } = target
  const findings = await runChecks({
    ...fileChecks(reader, filename),
    schema: () => checkSchema(target),
  })
  if (fits(findings)) {
    findings.push(
      ...(await runChecks({ rows: () => checkRows(target), clock_steps: () => checkFuture(reader) })),
      ...(mayWrite ? await runChecks({ decision: () => checkDecision(store) }) : []),
      // The store sets the mode when it opens the file, as it has just done.
      ...(mayWrite ? await runChecks({ journal: () => checkJournal(reader, filename) }) : []),
    )
  }
  const version = findings.find(({ check }) => check === 'version')?.found ?? 'SQLite'
  return { server: version, findings }
}
