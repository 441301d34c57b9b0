import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type ListenOptions } from 'node:net'
import express, {
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express'

/** Both majors, for `describe.each`. Express 4 stands beside 5 under another name, with the same types. */
export const expressVersions: [string, typeof express][] = [
  ['4', jest.requireActual<typeof express>('express4')],
  ['5', express],
]

/** What the application behind the limiters saw. */
export interface App extends Express {
  /** Requests that were let through. */
  readonly handled: Request[]
  /** Errors that reached the error handler. */
  readonly errors: unknown[]
}

/** An application that answers whatever its limiters let through, and 500 for an error. */
export function appWith(createExpress: typeof express, ...limiters: RequestHandler[]): App {
  const handled: Request[] = []
  const errors: unknown[] = []
  const app = Object.assign(createExpress(), { handled, errors })
  for (const limiter of limiters) app.use(limiter)
  app.use((req: Request, res: Response) => {
    handled.push(req)
    res.json({ ok: true })
  })
  app.use((error: unknown, _req: Request, res: Response, _next: NextFunction) => {
    errors.push(error)
    res.status(500).json({ error: String(error) })
  })
  return app
}

const servers = new Set<Server>()

afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections()
    server.close()
  }
  servers.clear()
})

/** Listens, by default on a free port of all addresses, until the test ends. */
export async function serve(app: RequestListener, where: ListenOptions = { port: 0 }): Promise<Server> {
  const server = createServer(app)
  servers.add(server)
  server.listen(where)
  await once(server, 'listening')
  return server
}

export const portOf = (server: Server): number => (server.address() as AddressInfo).port

/** Sends bytes on one connection and reads all that comes back until the server closes it. */
export async function exchange(server: Server, bytes: string): Promise<string> {
  const socket = connect(portOf(server), '127.0.0.1')
  let answer = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    answer += chunk
  })
  socket.write(bytes)
  await once(socket, 'close')
  return answer
}

/** The status of each response in what `exchange` read. */
export const statusesOf = (answer: string): number[] =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
