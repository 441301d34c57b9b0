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
  readonly seconds: number
}

/** What came of it. */
export interface LoadAnswer {
  readonly requests: number
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Responses other than 2xx, and requests without one. */
  readonly failed: number
  /** CPU time of this process, in microseconds. */
  readonly cpuMicros: number
}

/** Requests that a connection repeats, made beforehand so that making them takes no time from the server. */
const REQUESTS = 100

answerParent<LoadQuestion, LoadAnswer>(async ({ port, connections, clients, seconds }) => {
  // Each connection has keys of its own order, else all of them would ask for the same key at the same time.
  const nextKey = randomKeys(clients)
  const millis: number[] = []
  let failed = 0
  let [first, last] = [Number.POSITIVE_INFINITY, 0]
  const cpu = process.cpuUsage()
  const { errors } = await autocannon({
    url: `http://127.0.0.1:${port}/items`,
    connections,
    duration: seconds,
    sampleInt: 50,
    setupClient(client) {
      client.setRequests(
        Array.from({ length: REQUESTS }, () => ({ method: 'GET', headers: { [CLIENT_HEADER]: nextKey() } })),
      )
      client.on('response', (status, _bytes, took) => {
        last = performance.now()
        first = Math.min(first, last - took)
        millis.push(took)
        if (status < 200 || status > 299) failed += 1
      })
    },
  })
  const { user, system } = process.cpuUsage(cpu)
  const sorted = Float64Array.from(millis).sort()
  return {
    requests: sorted.length,
    perSecond: sorted.length / ((last - first) / 1000),
    p50: sorted[Math.floor(sorted.length * 0.5)] ?? Number.NaN,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
    failed: failed + errors,
    cpuMicros: user + system,
  }
})
