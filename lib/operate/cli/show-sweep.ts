import { SingleBar } from 'cli-progress'
import type { SweepResult } from '../../stores/store.js'
import { durationText } from './duration-text.js'
import { countText, numberText } from './number-text.js'

/** What was removed so far. */
export type SoFar = Pick<SweepResult, 'keys' | 'events'>

/** Says how far a sweep has come. */
export interface SweepShown {
  update(soFar: SoFar): void
  /** May be called again. */
  end(): void
}

/** A line at most every so often where there is no terminal, so that logs stay short. */
const LINE_MS = 2_000

/**
 * A bar with the time left where the stream is a terminal, else a line every two seconds.
 *
 * @param expired - how many keys are to be removed, as counted at the beginning
 */
export const showSweep = (stream: NodeJS.WriteStream, expired: number): SweepShown =>
  stream.isTTY === true ? bar(stream, expired) : lines(stream, expired)

function bar(stream: NodeJS.WriteStream, expired: number): SweepShown {
  const drawn = new SingleBar({
    stream,
    format: '{bar} {percentage}% | {value} of {total} keys, {events} events | {eta_formatted} left',
    hideCursor: true,
    clearOnComplete: false,
    formatValue: (value, _, type) =>
      type === 'value' || type === 'total' ? numberText(value) : String(value),
    etaBuffer: 50,
  })
  drawn.start(expired, 0, { events: '0' })
  return {
    update({ keys, events }) {
      // More may have expired since they were counted.
      if (keys > drawn.getTotal()) drawn.setTotal(keys)
      drawn.update(keys, { events: numberText(events) })
    },
    end: () => drawn.stop(),
  }
}

function lines(stream: NodeJS.WriteStream, expired: number): SweepShown {
  const begun = performance.now()
  let told = begun
  return {
    update({ keys, events }) {
      const now = performance.now()
      if (now - told < LINE_MS) return
      told = now
      const left = ((now - begun) / 1000 / Math.max(keys, 1)) * Math.max(0, expired - keys)
      stream.write(
        `${numberText(keys)} of ${countText(Math.max(expired, keys), 'key')}, ${countText(events, 'event')}, about ${durationText(left)} left\n`,
      )
    },
    end() {},
  }
}
