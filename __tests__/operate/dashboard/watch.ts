import { type ClientRequest, get, type IncomingMessage, type Server } from 'node:http'
import { portOf } from '../../http/serve.js'

/** One event of a stream. */
export interface StreamEvent {
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: what is in it is for the test to say
  readonly data: any
}

/** Somebody who looks at the stream of a dashboard. */
export interface Watch {
  readonly response: IncomingMessage
  /** Every event so far. */
  readonly events: StreamEvent[]
  /** The next event of that name that is so, of those to come and those already here. */
  until(event: string, holds?: (data: StreamEvent['data']) => boolean): Promise<StreamEvent['data']>
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>
  leave(): void
}

/** Looks, as a browser would. */
export function watch(server: Server, headers: Record<string, string> = {}): Promise<Watch> {
  return new Promise((resolve, reject) => {
    const path = '/limits/api/events'
    const asked: ClientRequest = get(
      { host: '127.0.0.1', port: portOf(server), path, headers },
      (response) => {
        const events: StreamEvent[] = []
        let check = (): void => {}
        let rest = ''
        response.setEncoding('utf8')
        response.on('data', (chunk) => {
          const parts = (rest + chunk).split('\n\n')
          rest = parts.pop() as string
          for (const part of parts) {
            const [, event, data] = /^event: (\w+)\ndata: (.*)$/s.exec(part) ?? []
            if (event && data) events.push({ event, data: JSON.parse(data) })
          }
          check()
        })
        const ended = new Promise<void>((done) => response.on('close', () => done()))
        resolve({
          response,
          events,
          ended,
          leave: () => asked.destroy(),
          until: (name, holds = () => true) =>
            new Promise((found) => {
              check = () => {
                const match = events.find(({ event, data }) => event === name && holds(data))
                if (match !== undefined) found(match.data)
              }
              check()
            }),
        })
      },
    )
    asked.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET') reject(error)
    })
  })
}
