import { shownKey } from './format.js'

const part = (name) => document.getElementById(`dialog-${name}`)

/**
 * Asks before something is done to a key: what is done cannot be undone, and rows move. Resolves with the seconds of a
 * block, with 0 for a reset, or with null when it is called off. The focus then goes back where it was.
 */
export function confirmAction(action, limit, key) {
  const dialog = document.getElementById('dialog')
  const isBlock = action === 'block'
  part('title').textContent = isBlock
    ? `Block a key of ${shownKey(limit)}?`
    : `Reset a key of ${shownKey(limit)}?`
  part('text').textContent = isBlock
    ? 'Everything on it is denied, in every process, until the time is over or it is reset.'
    : 'What was counted of it is forgotten, and its block ends. Other processes see it within a second.'
  part('key').textContent = shownKey(key)
  part('duration').hidden = !isBlock
  part('confirm').textContent = isBlock ? 'Block' : 'Reset'
  const focused = document.activeElement

  return new Promise((resolve) => {
    const events = new AbortController()
    const { signal } = events
    let answer = null
    part('form').addEventListener(
      'submit',
      (event) => {
        event.preventDefault()
        answer = isBlock ? Number(part('seconds').value) : 0
        dialog.close()
      },
      { signal },
    )
    part('cancel').addEventListener('click', () => dialog.close(), { signal })
    // Also for the key Escape.
    dialog.addEventListener(
      'close',
      () => {
        events.abort()
        if (focused?.isConnected) focused.focus()
        resolve(answer)
      },
      { signal },
    )
    dialog.showModal()
    part(isBlock ? 'seconds' : 'confirm').focus()
  })
}
