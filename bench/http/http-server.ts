import type { AddressInfo } from 'node:net'
import express from 'express'
import { answerParent } from '../processes/answer-parent.js'
import type { HttpRule } from './http-contender.js'
import { httpContenders } from './http-contenders.js'

/** What the server's process is asked: first to serve a contender's route, then for its CPU time. */
export type ServerQuestion =
  | { readonly contender: string; readonly place: string; readonly rule: HttpRule }
  | 'cpu'

/** The port it listens on, or the microseconds of CPU time it has used. */
export type ServerAnswer = number

answerParent<ServerQuestion, ServerAnswer>(async (question) => {
  if (question === 'cpu') {
    const { user, system } = process.cpuUsage()
    return user + system
  }
  const { contender: name, place, rule } = question
  const contender = httpContenders.find((each) => each.name === name)
  if (contender === undefined) throw new RangeError(`Expected a contender, got ${name}`)
  const make = await contender.load?.()
  const app = express()
  app.get('/items', ...(make === undefined ? [] : [await make(place, rule)]), (_req, res) => {
    res.json({ items: [{ id: 1, name: 'first' }], total: 1 })
  })
  const server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return (server.address() as AddressInfo).port
})
