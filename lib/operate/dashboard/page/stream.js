/** How long until a refused stream is asked for again, in milliseconds. */
const AGAIN_MS = 15_000
/** Without a tick for so long, the stream counts as lost, whatever the browser thinks of it. In milliseconds. */
const SILENCE_MS = 10_000

/** Follows the server's events, and comes back when they end. `onState` is told live, lost or waiting. */
export function follow({ onSnapshot, onTick, onState }) {
  let silence
  const start = () => {
    const source = new EventSource('api/events')
    const alive = () => {
      clearTimeout(silence)
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
      onState('lost')
      // Refused, not interrupted: browsers do not ask again by themselves.
      if (source.readyState === EventSource.CLOSED) setTimeout(start, AGAIN_MS)
    })
  }
  onState('waiting')
  start()
}
