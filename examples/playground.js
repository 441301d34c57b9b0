/** The most answers that are drawn of one route. */
const MOST_ANSWERS = 60

const json = (body) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
})

const ROUTES = [
  {
    title: 'Ping',
    rule: 'GET /ping · 3 per minute for a key',
    field: 'Key',
    value: 'alice',
    send: (key) => fetch('/ping', { headers: { 'X-Client-Key': key } }),
  },
  {
    title: 'Log in',
    rule: 'POST /login · 5 in 15 minutes for an account',
    field: 'Account',
    value: 'bob',
    send: (user) => fetch('/login', json({ user, password: 'demo' })),
  },
  {
    title: 'Claim',
    rule: 'POST /claim · 1 per hour for an account',
    field: 'Account',
    value: 'carol',
    send: (user) => fetch('/claim', json({ user })),
  },
]

/** A panel of the dashboard: buttons that send requests to this server, and each answer drawn. */
export default function openPlayground(section) {
  const styles = make('link', { rel: 'stylesheet', href: '/playground.css' })
  document.head.append(styles)
  section.setAttribute('aria-labelledby', 'playground-title')
  section.append(
    make('h2', { id: 'playground-title', textContent: 'Playground' }),
    make('p', {
      className: 'muted',
      textContent:
        'Send requests to this server and see what its limits answer. All of them count to 100 per minute, too.',
    }),
    make('div', { className: 'playground' }, ...ROUTES.map(routeOf)),
  )
}

function routeOf({ title, rule, field, value, send }, i) {
  const input = make('input', {
    id: `playground-${i}`,
    value,
    maxLength: 64,
    autocomplete: 'off',
    spellcheck: false,
  })
  const answers = make('ol', { className: 'answers', tabIndex: 0 })
  answers.setAttribute('aria-label', `Answers to ${title}`)
  const summary = make('p', { className: 'muted summary', textContent: 'Nothing sent yet.' })
  summary.setAttribute('role', 'status')
  const counts = { allowed: 0, denied: 0, failed: 0 }

  const one = async () => {
    const { kind, status, short, note = short } = await answerOf(() => send(input.value))
    counts[kind] += 1
    answers.append(
      make(
        'li',
        { className: kind },
        make('strong', { textContent: status }),
        ' ',
        make('span', { textContent: short }),
      ),
    )
    if (answers.children.length > MOST_ANSWERS) answers.firstChild.remove()
    answers.scrollTop = answers.scrollHeight
    const failed = counts.failed > 0 ? `, ${counts.failed} failed` : ''
    summary.textContent = `${counts.allowed} allowed, ${counts.denied} denied${failed}. Last answer: ${status}, ${note}.`
  }
  const button = (label, times) => {
    const made = make('button', { className: 'button', type: 'button', textContent: label })
    made.setAttribute('aria-label', `${title}: ${label.toLowerCase()}`)
    made.addEventListener('click', () => {
      for (let sent = 0; sent < times; sent += 1) void one()
    })
    return made
  }
  return make(
    'div',
    { className: 'route' },
    make('h3', { textContent: title }),
    make('p', { className: 'muted', textContent: rule }),
    make(
      'div',
      { className: 'controls' },
      make('label', { htmlFor: input.id }, make('span', { className: 'muted', textContent: field }), input),
      button('Send 1', 1),
      button('Send 10', 10),
      button('Send 30', 30),
    ),
    answers,
    summary,
  )
}

/** What a person wants to know of an answer: its status, what is left, or how long to wait. */
async function answerOf(send) {
  try {
    const response = await send()
    const status = String(response.status)
    const wait = response.headers.get('Retry-After')
    if (response.status === 429)
      return { kind: 'denied', status, short: `${wait} s`, note: `Retry-After ${wait} seconds` }
    if (!response.ok) return { kind: 'failed', status, short: response.statusText }
    const { limits } = await response.json()
    const { remaining } = limits.at(-1)
    return { kind: 'allowed', status, short: remaining === null ? 'uncounted' : `${remaining} left` }
  } catch {
    return { kind: 'failed', status: '–', short: 'no answer' }
  }
}

function make(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties)
  made.append(...children)
  return made
}
