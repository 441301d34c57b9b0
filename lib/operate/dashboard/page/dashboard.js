import * as api from './api.js'
import { confirmAction } from './dialogs.js'
import { element, setText } from './element.js'
import { duration, shownKey } from './format.js'
import { LimitCard } from './limit-card.js'
import { Search } from './search.js'
import { StorePanel } from './store-panel.js'
import { follow } from './stream.js'

const STATES = { live: 'Live', lost: 'Connection lost', waiting: 'Connecting' }
/** How long a notice stays, in milliseconds. */
const NOTICE_MS = 6_000

const byId = (id) => document.getElementById(id)
const cards = new Map()
const storePanel = new StorePanel(byId('store'))
/** The server's clock minus this one, in milliseconds. */
let ahead = 0
let breaker = 'closed'

let noticeTimer
/** Tells something in passing, to those who listen to the page too. */
function notify(text) {
  clearTimeout(noticeTimer)
  byId('notice').textContent = text
  noticeTimer = setTimeout(() => {
    byId('notice').textContent = ''
  }, NOTICE_MS)
}

function onState(state) {
  const badge = byId('connection')
  if (badge.dataset.state === 'live' && state === 'lost') notify('The connection to the server is lost.')
  badge.dataset.state = state
  setText(badge, STATES[state])
}

function showStore(store, now) {
  storePanel.render(store, now)
  const { state } = store.health
  if (state === 'open' && breaker !== 'open') notify('The store is down. Limits follow onStoreError.')
  if (state === 'closed' && breaker !== 'closed') notify('The store is back.')
  breaker = state
}

async function act(action, limit, { key }, search) {
  const seconds = await confirmAction(action, limit, key)
  if (seconds === null) return
  try {
    if (action === 'block') await api.block(limit, key, seconds)
    else await api.reset(limit, key)
    const done = action === 'block' ? `blocked for ${duration(seconds * 1000)}` : 'reset'
    notify(`${shownKey(key)} in ${shownKey(limit)} is ${done}.`)
  } catch (error) {
    notify(error.message)
  }
  await search.refresh()
}

function openCard(limit, end, now, onAct) {
  const card = new LimitCard(limit, end, now, onAct)
  byId('limits').append(card.node)
  return card
}

/** A panel of the application that does not load must not keep the page from working. */
async function openPanel(path) {
  const section = element('section')
  byId('panels').append(section)
  try {
    const { default: open } = await import(path)
    await open(section)
  } catch (error) {
    section.remove()
    console.error(error)
  }
}

async function start() {
  const { mayAct, panels, process } = await api.openSession()
  setText(byId('process'), process)
  byId('read-only').hidden = mayAct
  const onAct = mayAct ? (action, limit, row) => void act(action, limit, row, search) : null
  const search = new Search(onAct, notify)
  for (const path of panels) void openPanel(path)

  follow({
    onState,
    onSnapshot({ now, end, limits, store }) {
      ahead = now - Date.now()
      setText(byId('process'), `${store.kind} · ${process}`)
      search.offer(limits.filter(({ managed }) => managed).map(({ name }) => name))
      // Cards stay, and with them what is open and where the focus is.
      for (const limit of limits) {
        const card = cards.get(limit.name)
        if (card !== undefined) card.load(limit, end, now)
        else cards.set(limit.name, openCard(limit, end, now, onAct))
      }
      byId('no-limits').hidden = limits.length > 0
      for (const card of cards.values()) card.draw()
      showStore(store, now)
    },
    onTick({ now, end, counts, lists, store }) {
      ahead = now - Date.now()
      ;[...cards.values()].forEach((card, i) => {
        card.update(counts[i], end, lists[i], now)
      })
      search.tick(Date.now() + ahead)
      showStore(store, now)
    },
  })
}

start().catch((error) => {
  onState('lost')
  notify(error.message)
})
