import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Answer, Route } from './proxy-process.js'
import type { WireCounts } from './wire-counter.js'

/** A way to a server that can be far away, and on which one can count. */
export interface TcpProxy {
  /** The address of a server as it is reached through here. */
  reach(uri: string): string
  /** What has passed since it was started. */
  counts(): Promise<WireCounts>
  stop(): Promise<void>
}

/** Puts a proxy, in a process of its own, before a server on this machine. */
export async function startProxy(uri: string, delayMillis: number): Promise<TcpProxy> {
  const route: Route = { port: Number(new URL(uri).port), delayMillis }
  const child = fork('bench/proxy/proxy-process.ts', [JSON.stringify(route)], {
    execArgv: ['--import', 'tsx'],
  })
  const ask = async (): Promise<Answer> => (await once(child, 'message'))[0] as Answer
  const started = await ask()
  if (!('port' in started)) throw new Error('Expected the proxy to tell its port')
  return {
    reach(target) {
      const url = new URL(target)
      url.port = String(started.port)
      return url.href
    },
    async counts() {
      child.send('counts')
      const answer = await ask()
      if (!('counts' in answer)) throw new Error('Expected the proxy to tell its counts')
      return answer.counts
    },
    async stop() {
      const exited = once(child, 'exit')
      child.disconnect()
      await exited
    },
  }
}
