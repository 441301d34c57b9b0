import { type AddressInfo, connect, createServer } from 'node:net'
import { delayLine } from './delay-line.js'
import { WireCounter, type WireCounts } from './wire-counter.js'

/** Where a proxy leads, and how far away that seems. */
export interface Route {
  /** On 127.0.0.1. */
  readonly port: number
  /** Milliseconds each way. */
  readonly delayMillis: number
}

export type Answer = { readonly port: number } | { readonly counts: WireCounts }

// A process of its own, so that it takes no turns of the event loop that is measured.
const route = JSON.parse(process.argv[2] ?? '') as Route
const line = delayLine(route.delayMillis)
const counters: WireCounter[] = []

const server = createServer({ noDelay: true }, (client) => {
  const upstream = connect({ port: route.port, host: '127.0.0.1', noDelay: true })
  const counter = new WireCounter()
  counters.push(counter)
  client.on('data', (chunk) => {
    counter.fromClient(chunk)
    line.push(() => upstream.write(chunk))
  })
  upstream.on('data', (chunk) => {
    counter.fromServer()
    line.push(() => client.write(chunk))
  })
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.on('error', () => other.destroy())
    one.on('close', () => other.destroy())
  }
})

server.listen(0, '127.0.0.1', () => answer({ port: (server.address() as AddressInfo).port }))

process.on('message', () => {
  const sum = (name: keyof WireCounts): number => counters.reduce((all, counter) => all + counter[name], 0)
  answer({ counts: { commands: sum('commands'), roundTrips: sum('roundTrips') } })
})

// The benchmark has ended, in whatever way.
process.on('disconnect', () => process.exit())

function answer(message: Answer): void {
  process.send?.(message)
}
