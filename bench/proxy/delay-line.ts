/** Hands things on after a time, in order. */
export interface DelayLine {
  push(deliver: () => void): void
}

/**
 * Delays to a few microseconds, where timers know only whole milliseconds: it turns the event loop for as long as
 * something is on its way. That takes a core, in a moment in which everybody else waits for this very thing.
 */
export function delayLine(millis: number): DelayLine {
  const underWay: { readonly due: number; readonly deliver: () => void }[] = []
  const turn = (): void => {
    const now = performance.now()
    while (underWay[0] !== undefined && underWay[0].due <= now) underWay.shift()?.deliver()
    if (underWay.length > 0) setImmediate(turn)
  }
  return {
    push(deliver) {
      if (millis === 0) return deliver()
      underWay.push({ due: performance.now() + millis, deliver })
      if (underWay.length === 1) setImmediate(turn)
    },
  }
}
