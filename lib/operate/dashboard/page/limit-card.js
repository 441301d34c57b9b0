import { DecisionChart } from './charts.js'
import { element, setText } from './element.js'
import { decimal, number, rule, shownKey, time, timeWithSeconds } from './format.js'
import { KeyTable } from './key-table.js'

const OUTCOMES = ['Allowed', 'Denied', 'Degraded']
/** Seconds that a rate of this moment is the mean of. */
const NOW_SECONDS = 10

let lastId = 0

/** All that is shown of one limit. */
export class LimitCard {
  #name
  #counts
  #end
  #chart
  #chartBox
  #rates
  #totals
  #details
  #figures = element('tbody')
  #busiest
  #mostDenied
  #hovered = null
  #lists = { busiest: [], mostDenied: [] }

  /** @param onAct - called with an action, the limit's name and a row; null when nothing may be done */
  constructor({ name, rules, managed, counts, busiest, mostDenied }, end, now, onAct) {
    lastId += 1
    this.#name = name
    this.#counts = counts
    this.#end = end
    const act = onAct !== null && managed ? (action, row) => onAct(action, name, row) : null
    const shown = shownKey(name)
    this.#rates = OUTCOMES.map(() => element('span'))
    this.#totals = OUTCOMES.map(() => element('small'))
    const legend = OUTCOMES.map((outcome, i) =>
      element(
        'li',
        { 'data-outcome': outcome.toLowerCase() },
        outcome,
        element('strong', {}, this.#rates[i], ' ', this.#totals[i]),
      ),
    )
    this.#chartBox = element('div', { class: 'chart', role: 'img' })
    this.#chart = new DecisionChart(this.#chartBox, (point) => {
      this.#hovered = point
      this.#showRates()
    })
    this.#details = this.#makeFigures(shown)
    this.#busiest = new KeyTable({
      label: `Busiest keys of ${shown}, last 5 minutes`,
      count: { title: 'Hits', unit: 'hits', of: ({ hits }) => hits },
      none: 'No hits in the last 5 minutes.',
      onAct: act,
    })
    this.#mostDenied = new KeyTable({
      label: `Most denied keys of ${shown}, last 5 minutes`,
      count: { title: 'Denied', unit: 'denied', of: ({ denied }) => denied },
      none: 'No denials in the last 5 minutes.',
      onAct: act,
    })
    const id = `limit-${lastId}`
    this.node = element(
      'section',
      { class: 'card limit', 'aria-labelledby': id },
      element(
        'div',
        { class: 'limit-head' },
        element('h2', { id }, element('bdi', {}, shown)),
        element(
          'p',
          { class: 'muted' },
          [...new Set(rules.map(rule))].join(' · ') || 'seen, not given to the dashboard',
        ),
      ),
      element('ul', { class: 'legend' }, ...legend),
      this.#chartBox,
      this.#details,
      element('h3', {}, 'Busiest keys'),
      this.#busiest.node,
      element('h3', {}, 'Most denied keys'),
      this.#mostDenied.node,
    )
    this.#showLists({ busiest, mostDenied }, now)
  }

  /** All of it anew, after the stream was interrupted. */
  load({ counts, busiest, mostDenied }, end, now) {
    this.#counts = counts
    this.#end = end
    this.#showLists({ busiest, mostDenied }, now)
  }

  /** To be called once the card is in the page: a chart is as wide as its place. */
  draw() {
    this.#chart.draw(this.#counts, this.#end)
    this.#showRates()
    this.#describe()
  }

  /** What one tick brings: the counts of new seconds, and the lists if they have changed. */
  update(counts, end, lists, now) {
    this.#counts = [...this.#counts.slice(counts.length), ...counts]
    this.#end = end
    this.draw()
    this.#showLists(lists ?? this.#lists, now)
  }

  #showLists(lists, now) {
    this.#lists = lists
    this.#busiest.render(lists.busiest, now)
    this.#mostDenied.render(lists.mostDenied, now)
  }

  #sum(outcome, seconds) {
    let sum = 0
    for (let i = this.#counts.length - seconds * 3 + outcome; i < this.#counts.length; i += 3)
      sum += this.#counts[i]
    return sum
  }

  /** Of this moment, or of the one under the pointer. */
  #showRates() {
    OUTCOMES.forEach((_, i) => {
      const rate = this.#hovered?.rates[i] ?? this.#sum(i, NOW_SECONDS) / NOW_SECONDS
      setText(this.#rates[i], `${decimal(rate)}/s`)
      const at = this.#hovered && `at ${timeWithSeconds(this.#hovered.at)}`
      setText(this.#totals[i], at ?? `${number(this.#sum(i, 900))} total`)
    })
  }

  /** The chart in words, for those who do not see it. */
  #describe() {
    if (this.#end % 10 !== 0 && this.#chartBox.hasAttribute('aria-label')) return
    const sums = OUTCOMES.map((outcome, i) => `${number(this.#sum(i, 900))} ${outcome.toLowerCase()}`)
    const label = `Decisions of ${this.#name} per second over the last 15 minutes: ${sums.join(', ')}. The table below has the figures.`
    this.#chartBox.setAttribute('aria-label', label)
    if (this.#details.open) this.#fillFigures()
  }

  #makeFigures(shown) {
    const heads = ['Minute', ...OUTCOMES].map((title, i) =>
      element('th', { scope: 'col', class: i === 0 ? '' : 'number' }, title),
    )
    const details = element(
      'details',
      {},
      element('summary', {}, 'Figures as a table'),
      element(
        'div',
        { class: 'figures', tabIndex: 0, role: 'region', 'aria-label': `Figures of ${shown}` },
        element(
          'table',
          { 'aria-label': `Decisions of ${shown} by minute` },
          element('thead', {}, element('tr', {}, ...heads)),
          this.#figures,
        ),
      ),
    )
    details.addEventListener('toggle', () => this.#fillFigures())
    return details
  }

  /** By whole minutes of the clock, the newest first. */
  #fillFigures() {
    const seconds = this.#counts.length / 3
    const begin = this.#end - seconds + 1
    const minutes = new Map()
    for (let i = 0; i < seconds; i += 1) {
      const minute = Math.floor((begin + i) / 60)
      const sums = minutes.get(minute) ?? [0, 0, 0]
      for (let outcome = 0; outcome < 3; outcome += 1) sums[outcome] += this.#counts[i * 3 + outcome]
      minutes.set(minute, sums)
    }
    const rows = [...minutes]
      .reverse()
      .map(([minute, sums]) =>
        element(
          'tr',
          {},
          element('td', {}, time(minute * 60_000)),
          ...sums.map((sum) => element('td', { class: 'number' }, number(sum))),
        ),
      )
    this.#figures.replaceChildren(...rows)
  }
}
