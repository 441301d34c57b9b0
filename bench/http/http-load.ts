import autocannon from 'autocannon'
import { randomKeys } from '../load/random-keys.js'
import { answerParent } from '../processes/answer-parent.js'
import { CLIENT_HEADER } from './client-of.js'

/** A load: so many connections, kept alive, each with one request at a time. */
export interface LoadQuestion {
  readonly port: number
  readonly connections: number
  /** Distinct client keys. */
  readonly clients: number
  /** Before anything counts: connecting, and waking a process that had nothing to do, take their time. */
  readonly runInSeconds: number
  readonly seconds: number
}

/** What came of it. */
export interface LoadAnswer {
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** All answers, those of the run-in too. */
  readonly answers: number
  /** Answers other than 2xx, and requests without one, those of the run-in too. */
  readonly failed: number
  /** CPU time of this process, for all answers, in microseconds. */
  readonly cpuMicros: number
}

/** Requests that a connection repeats, made beforehand so that making them takes no time from the server. */
const REQUESTS = 100

answerParent<LoadQuestion, LoadAnswer>(async (question) => {
  const { port, connections, clients, runInSeconds, seconds } = question
  // Each connection has keys of its own order, else all of them would ask for the same key at the same time.
  const nextKey = randomKeys(clients)
  const times: number[] = []
  let answers = 0
  let failed = 0
  let [begun, last] = [0, 0]
  const cpu = process.cpuUsage()
  const { errors } = await autocannon({
    url: `http://127.0.0.1:${port}/items`,
    connections,
    duration: runInSeconds + seconds,
    sampleInt: 50,
    setupClient(client) {
      client.setRequests(
        Array.from({ length: REQUESTS }, () => ({ method: 'GET', headers: { [CLIENT_HEADER]: nextKey() } })),
      )
      client.on('response', (status, _bytes, millis) => {
        answers += 1
        if (status < 200 || status > 299) failed += 1
        last = performance.now()
        if (begun === 0) begun = last + runInSeconds * 1000
        if (last > begun) times.push(millis)
      })
    },
  })
  const { user, system } = process.cpuUsage(cpu)
  const sorted = Float64Array.from(times).sort()
  return {
    perSecond: sorted.length / ((last - begun) / 1000),
    p50: sorted[Math.floor(sorted.length * 0.5)] ?? Number.NaN,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
    answers,
    failed: failed + errors,
    cpuMicros: user + system,
  }
})
