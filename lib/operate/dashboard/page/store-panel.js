import { element, setText } from './element.js'
import { bytes, date, decimal, duration, milliseconds, number } from './format.js'

const STATES = { closed: 'Healthy', open: 'Down', 'half-open': 'Returning' }
const PRECISION = { exact: '', estimate: '≈ ', 'at-least': 'over ' }

/** The tiles that tell how the store is. Each has a figure, and a note below it. */
export class StorePanel {
  #tiles = new Map()
  #list
  #state = element('span', { class: 'state' })

  constructor(list) {
    this.#list = list
  }

  render({ health, batches, inspection, sweptAt, sweptRows }, now) {
    const { state, since, lastError, pending } = health
    this.#state.dataset.state = state
    setText(this.#state, STATES[state])
    const told = lastError === null || state === 'closed' ? '' : `, ${lastError}`
    this.#tile('Breaker', this.#state, `${state} since ${date(since)}${told}`)
    this.#tile('Latency p50 · p99', latencyOf(batches), 'of batches, last minute')
    const { meanHits, mostHits, batches: count, failed } = batches
    this.#tile(
      'Batch',
      meanHits === null ? '–' : `${decimal(meanHits)} ${meanHits === 1 ? 'hit' : 'hits'}`,
      count === 0 && failed === 0
        ? 'none in the last minute'
        : `largest ${number(mostHits ?? 0)}${failed > 0 ? `, ${number(failed)} failed` : ''}`,
    )
    this.#tile('Waiting', number(pending), pending === 1 ? 'hit' : 'hits')
    this.#table(inspection)
    const connections = inspection?.connections
    if (connections) {
      const { open, most } = connections
      this.#tile('Connections', number(open), `of ${number(most)}, all clients`)
    }
    this.#tile(
      'Last sweep',
      sweptAt === null ? '–' : `${duration(Math.max(1000, now - sweptAt))} ago`,
      sweptRows === null ? 'none by this process yet' : `${number(sweptRows)} rows by this process`,
    )
  }

  #table(inspection) {
    if (inspection === null) {
      this.#tile('Stored', '–', 'not known')
      return
    }
    const { keys, events, precision, bytes: size } = inspection
    const about = PRECISION[precision]
    const disk = size === null ? '' : ` · ${bytes(size)}`
    this.#tile(
      'Stored',
      `${about}${number(keys)} ${keys === 1 ? 'key' : 'keys'}`,
      `${about}${number(events)} events${disk}`,
    )
  }

  #tile(title, figure, note) {
    let tile = this.#tiles.get(title)
    if (tile === undefined) {
      tile = { figure: element('dd'), note: element('dd') }
      this.#tiles.set(title, tile)
      this.#list.append(element('div', {}, element('dt', {}, title), tile.figure, tile.note))
    }
    if (typeof figure === 'string') setText(tile.figure, figure)
    else if (tile.figure.firstChild !== figure) tile.figure.replaceChildren(figure)
    setText(tile.note, note)
  }
}

/** Half of the batches took no longer than the first, 99 of 100 no longer than the second. */
const latencyOf = ({ p50, p99 }) => (p50 === null ? '–' : `${milliseconds(p50)} · ${milliseconds(p99)} ms`)
