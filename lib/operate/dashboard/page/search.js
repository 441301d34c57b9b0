import * as api from './api.js'
import { element } from './element.js'
import { shownKey } from './format.js'
import { KeyTable } from './key-table.js'

/** The form that looks a key up, and what it found. */
export class Search {
  #form = document.getElementById('search')
  #key = document.getElementById('search-key')
  #limit = document.getElementById('search-limit')
  #found = document.getElementById('found')
  #onAct
  #notify
  #asked = null
  #table = null
  #rows = []

  /**
   * @param onAct - called with an action, a limit's name and a row; null when nothing may be done
   * @param notify - tells the person something
   */
  constructor(onAct, notify) {
    this.#onAct = onAct
    this.#notify = notify
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault()
      this.#asked = { key: this.#key.value, limit: this.#limit.value }
      this.#table = null
      void this.refresh(true)
    })
  }

  /** The limits that can be chosen. */
  offer(names) {
    const { value } = this.#limit
    const options = names.map((name) => element('option', { value: name }, shownKey(name)))
    this.#limit.replaceChildren(element('option', { value: '' }, 'All limits'), ...options)
    this.#limit.value = names.includes(value) ? value : ''
  }

  /** Asks again for what was found. */
  async refresh(tell = false) {
    if (this.#asked === null) return
    const { key, limit } = this.#asked
    try {
      const { rows } = await api.find(key, limit)
      this.#rows = rows.map((row) => ({ ...row, id: row.limit, label: row.limit }))
      this.#show(key)
      if (tell) this.#notify(`${shownKey(key)}: ${this.#summary()}`)
    } catch (error) {
      this.#notify(error.message)
    }
  }

  /** As time goes by. */
  tick(now) {
    this.#table?.render(this.#rows, now)
  }

  #summary() {
    const denied = this.#rows.filter((row) => row.denied).map((row) => row.limit)
    const used = this.#rows.filter((row) => row.fill !== null && row.fill.used > 0)
    if (denied.length > 0) return `denied by ${denied.join(', ')}`
    return used.length === 0 ? 'nothing is counted' : `counted by ${used.map((row) => row.limit).join(', ')}`
  }

  #show(key) {
    if (this.#table === null) {
      const shown = shownKey(key)
      this.#table = new KeyTable({
        label: `Limits for the key ${shown}`,
        subject: 'Limit',
        count: null,
        none: 'No limits.',
        onAct: this.#onAct && ((action, row) => this.#onAct(action, row.limit, row)),
      })
      this.#found.replaceChildren(
        element('h3', {}, element('bdi', {}, shown)),
        element('div', { class: 'found' }, this.#table.node),
      )
    }
    this.#table.render(this.#rows, Date.now())
    this.#found.hidden = false
  }
}
