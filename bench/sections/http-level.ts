import { readFile } from 'node:fs/promises'
import { openPlace } from '../contenders/open-place.js'
import type { HttpContender } from '../http/http-contender.js'
import { bare, erlMemory, erlRedis, httpContenders, oursMysql, rlfMysql } from '../http/http-contenders.js'
import type { LoadAnswer, LoadQuestion } from '../http/http-load.js'
import type { ServerAnswer, ServerQuestion } from '../http/http-server.js'
import { ratioOf, spreadOf } from '../load/spread.js'
import { takeTurns } from '../load/take-turns.js'
import { type Child, startChild } from '../processes/start-child.js'
import { number } from '../report/number.js'
import type { Context, Findings, Section, Servers, Table, Target } from '../section.js'

const CONNECTIONS = 64
const CLIENTS = 1000
/** A server that had nothing to do takes a while to come to its speed again. */
const RUN_IN_SECONDS = 0.4
const RULE = { limit: 1_000_000_000, windowSeconds: 60 }

interface Plan {
  readonly contenders: readonly HttpContender[]
  /** Many short rounds rather than few long ones: what slows the machine for a while then meets all alike. */
  readonly rounds: number
  readonly seconds: number
  /** Until then the code is not compiled. */
  readonly warmUpRequests: number
}

const planOf = (quick: boolean): Plan =>
  quick
    ? {
        contenders: [bare, oursMysql, erlMemory, erlRedis, rlfMysql],
        rounds: 3,
        seconds: 0.3,
        warmUpRequests: 3000,
      }
    : { contenders: httpContenders, rounds: 5, seconds: 0.5, warmUpRequests: 5000 }

/** A contender's server, ready for load. */
interface Served {
  readonly contender: HttpContender
  readonly server: Child<ServerQuestion, ServerAnswer>
  readonly port: number
}

/** A round of load on one server. */
interface Round extends LoadAnswer {
  /** CPU time of the server's process, and of the database, in microseconds a request; NaN where it is not known. */
  readonly serverMicros: number
  readonly databaseMicros: number
}

/** An Express route with each middleware before it, under load from 64 connections. */
export const httpLevel: Section = {
  id: 'http-level',
  title: 'HTTP: an Express 5 route behind each middleware',
  steps: (quick) => planOf(quick).rounds + planOf(quick).contenders.length,
  async run({ quick, servers, step }: Context): Promise<Findings> {
    const plan = planOf(quick)
    const { contenders, rounds, seconds, warmUpRequests } = plan
    const load = startChild<LoadQuestion, LoadAnswer>(new URL('../http/http-load.ts', import.meta.url))
    const started: (() => Promise<void>)[] = []
    const ask = ({ port }: Served, length: number): Promise<LoadAnswer> =>
      load.ask({
        port,
        connections: CONNECTIONS,
        clients: CLIENTS,
        runInSeconds: RUN_IN_SECONDS,
        seconds: length,
      })
    try {
      const starting = contenders.map((contender) => serve(contender, servers, started))
      const served = await Promise.all(starting)
      for (const each of served) {
        await warmUp((seconds) => ask(each, seconds), warmUpRequests)
        step(`${each.contender.name} is warm`)
      }
      const outcomes = await takeTurns(
        served,
        rounds,
        async (each): Promise<Round> => {
          const cpuTimes = async (): Promise<[number, number]> => [
            await each.server.ask('cpu'),
            await databaseCpu(each.contender, servers),
          ]
          const before = await cpuTimes()
          const answer = await ask(each, seconds)
          const after = await cpuTimes()
          return {
            ...answer,
            serverMicros: (after[0] - before[0]) / answer.answers,
            databaseMicros: (after[1] - before[1]) / answer.answers,
          }
        },
        (round) => step(`round ${round}`),
      )
      const entries = new Map(contenders.map((contender, i) => [contender, outcomes[i] ?? []]))
      return {
        id: httpLevel.id,
        title: httpLevel.title,
        text: TEXT,
        tables: [speedTable(entries, plan), cpuTable(entries)],
        plots: [],
        targets: targetsOf(entries),
        raw: Object.fromEntries([...entries].map(([{ name }, each]) => [name, each])),
      }
    } finally {
      await load.end()
      for (const end of started) await end()
    }
  },
}

/** Loads a server until it has answered so many requests, or for some seconds. */
async function warmUp(ask: (seconds: number) => Promise<LoadAnswer>, requests: number): Promise<void> {
  let answered = 0
  for (let i = 0; i < 4 && answered < requests; i += 1) answered += (await ask(0.5)).answers
}

/** @param ends - gets what ends it, at once, for a start that fails later */
async function serve(
  contender: HttpContender,
  servers: Servers,
  ends: (() => Promise<void>)[],
): Promise<Served> {
  const place = await openPlace(contender.store, servers)
  const server = startChild<ServerQuestion, ServerAnswer>(new URL('../http/http-server.ts', import.meta.url))
  ends.push(async () => {
    await server.end()
    await place.remove()
  })
  const port = await server.ask({ contender: contender.name, place: place.at, rule: RULE })
  return { contender, server, port }
}

/** Microseconds of CPU time that a database has used, where Linux tells; its clock ticks a hundred times a second. */
async function databaseCpu({ store }: HttpContender, servers: Servers): Promise<number> {
  if (store !== 'mysql' && store !== 'mariadb') return Number.NaN
  const text = await readFile(`/proc/${servers[store].pid}/stat`, 'utf8').catch(() => '')
  // What follows the name, which may have anything in it; user and system time are fields 14 and 15.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

type Entries = ReadonlyMap<HttpContender, readonly Round[]>

const ratesOf = (entries: Entries, contender: HttpContender): number[] =>
  (entries.get(contender) ?? []).map(({ perSecond }) => perSecond)

function speedTable(entries: Entries, { rounds, seconds }: Plan): Table {
  return {
    title: `${CONNECTIONS} connections, ${number(CLIENTS)} client keys`,
    columns: ['middleware', 'requests/s', 'lowest–highest', '× alone', 'p50, ms', 'p99, ms', 'not 2xx'],
    rows: [...entries].map(([contender, each]) => {
      const rates = ratesOf(entries, contender)
      const { median, lowest, highest } = spreadOf(rates)
      return [
        contender.name,
        number(median),
        `${number(lowest)}–${number(highest)}`,
        number(ratioOf(rates, ratesOf(entries, bare))),
        number(spreadOf(each.map(({ p50 }) => p50)).median),
        number(spreadOf(each.map(({ p99 }) => p99)).median),
        String(each.reduce((sum, { failed }) => sum + failed, 0)),
      ]
    }),
    note: `${rounds} rounds of ${seconds} s, each after ${RUN_IN_SECONDS} s that do not count.`,
  }
}

function cpuTable(entries: Entries): Table {
  const middle = (values: readonly number[]): string => number(spreadOf(values).median)
  return {
    title: 'Where the cores go: microseconds of CPU time for a request',
    columns: ['middleware', 'Express process', 'load generator', 'database', 'configuration'],
    rows: [...entries].map(([{ name, configuration }, each]) => [
      name,
      middle(each.map(({ serverMicros }) => serverMicros)),
      middle(each.map(({ cpuMicros, answers }) => cpuMicros / answers)),
      middle(each.map(({ databaseMicros }) => databaseMicros)),
      configuration,
    ]),
    note: 'Of Redis it is not measured. One Express process can use one core; the rest is for all the others.',
  }
}

function targetsOf(entries: Entries): Target[] {
  const target = (other: HttpContender, atLeast: number): Target => ({
    what: `HTTP, requests/s: ${oursMysql.name}, to ${other.name}`,
    value: ratioOf(ratesOf(entries, oursMysql), ratesOf(entries, other)),
    atLeast,
  })
  return [target(bare, 0.8), target(erlMemory, 1), target(erlRedis, 1), target(rlfMysql, 3)]
}

const TEXT = `One Express 5 process for each middleware, with a route that answers a small JSON document. autocannon, in a process of
its own, keeps ${CONNECTIONS} connections alive and has one request in flight on each; the header \`x-client\` names one of ${number(CLIENTS)}
clients at random, and is everyone's key. Nobody is over the limit, and everyone tells the client the limit, what is
left of it and when it ends. The processes share the cores of the machine: where there are only two, one of them is the
Express process's, and load generator and database have the other between them, so that what a database costs is taken
from the load too.`
