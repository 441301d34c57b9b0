import { PassThrough } from 'node:stream'
import type { Response } from 'express'
import { Viewers } from '../../../lib/operate/dashboard/viewers.js'

/** A response as far as a stream needs one. */
function responseOf() {
  const stream = new PassThrough({ highWaterMark: 16 })
  const res = Object.assign(stream, { status: () => {}, setHeader: () => {} })
  return { stream, res: res as unknown as Response }
}

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

test('a stream ends after ten minutes, so that who looks is authorised anew', async () => {
  const onChange = jest.fn()
  const viewers = new Viewers(2, onChange)
  const { stream, res } = responseOf()
  viewers.add(res)
  stream.resume()
  jest.advanceTimersByTime(599_000)
  expect(stream.writableEnded).toBe(false)
  const closed = new Promise((resolve) => stream.on('close', resolve))
  jest.advanceTimersByTime(2_000)
  expect(stream.writableEnded).toBe(true)
  await closed
  expect(onChange.mock.calls).toEqual([[1], [0]])
})

test('one who has left before his stream began takes no place', () => {
  const onChange = jest.fn()
  const viewers = new Viewers(1, onChange)
  const { stream, res } = responseOf()
  stream.destroy()
  viewers.add(res)
  expect(viewers.isFull).toBe(false)
  expect(onChange).not.toHaveBeenCalled()
})

test('one who does not read is sent away before much is kept for him', () => {
  const viewers = new Viewers(2, () => {})
  const { stream, res } = responseOf()
  const { stream: other, res: otherRes } = responseOf()
  viewers.add(res)
  viewers.add(otherRes)
  other.resume()
  for (let i = 0; i < 30; i += 1) {
    viewers.send('tick', { filler: 'x'.repeat(50_000) })
    other.read()
  }
  expect(stream.destroyed).toBe(true)
  expect(stream.writableLength).toBeLessThan(1_200_000)
})

test('an event is one line of data, whatever is in it', () => {
  const viewers = new Viewers(2, () => {})
  const { stream, res } = responseOf()
  viewers.add(res)
  viewers.send('tick', { key: 'a\n\nevent: snapshot\r\ndata: {}' })
  const text = String(stream.read())
  expect(text).toBe('retry: 2000\n\nevent: tick\ndata: {"key":"a\\n\\nevent: snapshot\\r\\ndata: {}"}\n\n')
})
