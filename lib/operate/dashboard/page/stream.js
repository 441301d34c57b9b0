/** How long until a refused stream is asked for again, in milliseconds. */
const AGAIN_MS = 15_000
/** Without a tick for so long, the stream counts as lost, whatever the browser thinks of it. In milliseconds. */
const SILENCE_MS = 10_000
/** A stream that ends is opened anew at once; only when that takes longer than this, it is lost. In milliseconds. */
const GAP_MS = 5_000

/** Follows the server's events, and comes back when they end. `onState` is told live, lost or waiting. */
export function follow({ onSnapshot, onTick, onState }) {
  let silence
  let gap
  const start = () => {
    const source = new EventSource('api/events')
    const alive = () => {
      clearTimeout(silence)
      clearTimeout(gap)
      silence = setTimeout(() => {
        source.close()
        onState('lost')
        start()
      }, SILENCE_MS)
    }
    source.addEventListener('open', alive)
    source.addEventListener('snapshot', ({ data }) => {
      alive()
      onState('live')
      onSnapshot(JSON.parse(data))
    })
    source.addEventListener('tick', ({ data }) => {
      alive()
      onTick(JSON.parse(data))
    })
    source.addEventListener('error', () => {
      clearTimeout(silence)
      clearTimeout(gap)
      if (source.readyState === EventSource.CLOSED) {
        // Refused, not interrupted: browsers do not ask again by themselves.
        onState('lost')
        setTimeout(start, AGAIN_MS)
      } else gap = setTimeout(onState, GAP_MS, 'lost')
    })
  }
  onState('waiting')
  start()
}
