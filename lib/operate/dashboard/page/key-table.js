import { element, setText } from './element.js'
import { date, duration, number, shownKey } from './format.js'

/** What was looked up so long ago is no longer told as the present, in milliseconds. */
const OLD_MS = 20_000

/**
 * Keys, how full a limit is for each, and when it is free. Rows stay the same elements while their keys stay, so that the
 * focus does too; and while somebody points at one, or has the focus in one, none moves.
 */
export class KeyTable {
  #table
  #body
  #rows = new Map()
  #columns
  #none
  #onAct

  /**
   * @param label - what the table shows, for screen readers
   * @param subject - title of the first column
   * @param count - title and unit of the column of numbers, or null for none
   * @param none - what to say when there are no rows
   * @param onAct - called with an action and a row, or null when nothing may be done
   */
  constructor({ label, subject = 'Key', count, none, onAct }) {
    this.#onAct = onAct
    this.#columns = [subject, ...(count ? [count.title] : []), 'Used', 'Free', ...(onAct ? ['Actions'] : [])]
    this.#body = element('tbody', { role: 'rowgroup' })
    const heads = this.#columns.map((title) =>
      element(
        'th',
        { scope: 'col', role: 'columnheader', class: title === count?.title ? 'number' : '' },
        title === 'Actions' ? element('span', { class: 'visually-hidden' }, title) : title,
      ),
    )
    this.#table = element(
      'table',
      { class: 'keys', role: 'table', 'aria-label': label },
      element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...heads)),
      this.#body,
    )
    this.#none = element('p', { class: 'none' }, none)
    this.count = count
    this.node = element('div', {}, this.#table, this.#none)
    this.render([], 0)
  }

  /** @param rows - each with `key`, `fill`, and what `count.of` takes */
  render(rows, now) {
    const isHeld = this.#body.matches(':hover') || this.#body.contains(document.activeElement)
    const wanted = new Map(rows.map((row) => [row.id ?? row.key, row]))
    for (const [id, row] of this.#rows) {
      if (wanted.has(id)) row.update(wanted.get(id), now)
      else if (isHeld) row.tick(now)
      else {
        row.node.remove()
        this.#rows.delete(id)
      }
    }
    for (const [id, row] of wanted) {
      if (this.#rows.has(id)) continue
      if (isHeld && this.#rows.size >= rows.length) continue
      const made = new Row(row, this.count, this.#onAct)
      made.update(row, now)
      this.#rows.set(id, made)
      this.#body.append(made.node)
    }
    if (!isHeld) this.#sort([...wanted.keys()])
    this.#table.hidden = this.#rows.size === 0
    this.#none.hidden = this.#rows.size > 0
  }

  /** Moves only what is not in its place: an element that is moved loses the focus. */
  #sort(ids) {
    ids.forEach((id, i) => {
      const { node } = this.#rows.get(id)
      if (this.#body.children[i] !== node) this.#body.insertBefore(node, this.#body.children[i] ?? null)
    })
  }
}

class Row {
  #row
  #count
  #counted = element('td', { role: 'cell', class: 'number' })
  #used = element('span')
  #bar = element('i')
  #meter = element('span', { class: 'meter', 'aria-hidden': 'true' }, this.#bar)
  #frees = element('td', { role: 'cell', class: 'frees' })

  constructor(row, count, onAct) {
    this.#count = count
    if (count) this.#counted.dataset.unit = count.unit
    const shown = shownKey(row.label ?? row.key)
    const cells = [
      element('td', { role: 'cell', class: row.label === undefined ? 'key' : '' }, element('bdi', {}, shown)),
      ...(count ? [this.#counted] : []),
      element('td', { role: 'cell' }, element('div', { class: 'fill' }, this.#meter, this.#used)),
      this.#frees,
    ]
    if (onAct) cells.push(this.#actions(shown, onAct))
    this.node = element('tr', { role: 'row' }, ...cells)
  }

  #actions(shown, onAct) {
    const cell = element('td', { role: 'cell', class: 'actions' })
    for (const [action, title] of [
      ['reset', 'Reset'],
      ['block', 'Block'],
    ]) {
      const button = element(
        'button',
        { class: 'button small', type: 'button', 'aria-label': `${title} ${shown}` },
        title,
      )
      button.addEventListener('click', () => onAct(action, this.#row))
      cell.append(button)
    }
    return cell
  }

  update(row, now) {
    this.#row = row
    if (this.#count) setText(this.#counted, number(this.#count.of(row)))
    for (const button of this.node.querySelectorAll('button')) button.disabled = row.cut === true
    this.tick(now)
  }

  /** What changes by itself as time goes by. */
  tick(now) {
    const { fill } = this.#row
    if (fill === null) {
      setText(this.#used, 'unknown')
      setText(this.#frees, '–')
      this.#meter.hidden = true
      return
    }
    const { used, limit, freesAt, at } = fill
    this.#meter.hidden = false
    this.#bar.style.width = `${limit === 0 ? 100 : Math.min(100, (used / limit) * 100)}%`
    const isFull = freesAt === null || freesAt > now
    this.#meter.classList.toggle('full', isFull)
    setText(this.#used, `${number(used)} of ${number(limit)}`)
    setText(this.#frees, freesAt === null ? 'never' : isFull ? `in ${duration(freesAt - now)}` : 'now')
    const isOld = used > 0 && at < now - OLD_MS
    this.node.classList.toggle('old', isOld)
    this.node.title = isOld ? `As of ${date(at)}` : ''
  }
}
