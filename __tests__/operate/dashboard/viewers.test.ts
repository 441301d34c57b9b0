import { once } from 'node:events'
import { createServer, get, type ServerResponse } from 'node:http'
import type { Response } from 'express'
import { Viewers } from '../../../lib/operate/dashboard/viewers.js'
import { portOf } from '../../http/serve.js'

test('a viewer who has left before his stream began takes no place', async () => {
  const changes: number[] = []
  const viewers = new Viewers(1, (count) => changes.push(count))
  const server = createServer().listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    const asking = get({ port: portOf(server) }).on('error', () => {})
    const [, res] = (await once(server, 'request')) as [unknown, ServerResponse]
    const left = once(res, 'close')
    asking.destroy()
    await left
    viewers.add(res as Response)
    expect(viewers.isFull).toBe(false)
    expect(changes).toEqual([])
  } finally {
    server.close()
  }
})
