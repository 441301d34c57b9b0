/** An instant at which one-minute and one-hour windows begin. */
const START = Date.UTC(2026, 0, 5, 12)

/** Stops the store's clock and the process's, which then move together by `passTime`. Timers and sockets stay real. */
export function stopTime(): void {
  jest.useFakeTimers({
    now: START,
    doNotFake: [
      'clearImmediate',
      'clearInterval',
      'clearTimeout',
      'hrtime',
      'nextTick',
      'queueMicrotask',
      'setImmediate',
      'setInterval',
      'setTimeout',
    ],
  })
}

/** As `stopTime`, with the timers: they fire when time is moved. Not for tests with sockets. */
export function stopTimers(): void {
  jest.useFakeTimers({ now: START, doNotFake: ['hrtime', 'nextTick', 'queueMicrotask', 'setImmediate'] })
}

export const passTime = (milliseconds: number): void => {
  jest.advanceTimersByTime(milliseconds)
}

afterEach(() => {
  jest.useRealTimers()
})
