let token = ''

/** What went wrong, in a sentence. */
async function problemOf(response) {
  const problem = await response.json().catch(() => null)
  return new Error(problem?.detail ?? problem?.title ?? `The server answered ${response.status}.`)
}

async function ask(path, options) {
  const response = await fetch(path, { ...options, cache: 'no-store', credentials: 'same-origin' })
  if (!response.ok) throw await problemOf(response)
  return response.json()
}

/** Who looks, at what, and whether he may act. */
export async function openSession() {
  const session = await ask('api/session')
  token = session.token
  return session
}

/** The state of a key under all limits, or under one. */
export const find = (key, limit) =>
  ask(`api/find?${new URLSearchParams(limit === '' ? { key } : { key, limit })}`)

const post = (path, body) =>
  ask(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Rate-Limit-Token': token },
    body: JSON.stringify(body),
  })

export const reset = (limit, key) => post('api/reset', { limit, key })
export const block = (limit, key, seconds) => post('api/block', { limit, key, seconds })
