import { Writable } from 'node:stream'
import { showSweep } from '../../../lib/operate/cli/show-sweep.js'

/** Keeps what is written, as a terminal or as a pipe. */
function stream(isTTY: boolean): { out: NodeJS.WriteStream; text: () => string } {
  let text = ''
  const out = new Writable({
    write(chunk, _, done) {
      text += String(chunk)
      done()
    },
  })
  // What the bar asks of a terminal beside writing.
  const terminal = {
    isTTY,
    columns: 120,
    cursorTo: () => true,
    clearLine: () => true,
    moveCursor: () => true,
  }
  return { out: Object.assign(out, terminal) as unknown as NodeJS.WriteStream, text: () => text }
}

describe('a sweep that goes on for long', () => {
  it('is a bar with the time left on a terminal', () => {
    const { out, text } = stream(true)
    const shown = showSweep(out, 4_000)
    shown.update({ keys: 1_000, events: 2_500 })
    shown.update({ keys: 2_000, events: 5_000 })
    shown.end()
    shown.end()
    expect(text()).toMatch(/0% \| 0 of 4,000 keys, 0 events \|/)
    expect(text()).toMatch(/50% \| 2,000 of 4,000 keys, 5,000 events \| .*\d+s left/)
  })

  it('never shows more than all', () => {
    const { out, text } = stream(true)
    const shown = showSweep(out, 100)
    shown.update({ keys: 250, events: 0 })
    shown.end()
    expect(text()).toMatch(/100% \| 250 of 250 keys/)
  })

  it('is a line every two seconds elsewhere', () => {
    jest.useFakeTimers({ now: 0 })
    const { out, text } = stream(false)
    const shown = showSweep(out, 1_000)
    for (let second = 1; second <= 5; second += 1) {
      jest.advanceTimersByTime(1_000)
      shown.update({ keys: second * 100, events: second })
    }
    shown.end()
    jest.useRealTimers()
    expect(text()).toBe(
      '200 of 1,000 keys, 2 events, about 8 s left\n400 of 1,000 keys, 4 events, about 6 s left\n',
    )
  })
})
