/* global uPlot */
import { time } from './format.js'

/** Seconds that one point of a chart stands for. */
const BUCKET = 5
const HEIGHT = 150
const OUTCOMES = ['allowed', 'denied', 'degraded']
const isDark = matchMedia('(prefers-color-scheme: dark)')

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()

/**
 * Decisions per second as three lines over the last fifteen minutes, each point the mean of five seconds. Drawn on a canvas,
 * so whoever uses it must offer the figures as text as well.
 */
export class DecisionChart {
  #container
  #onPoint
  #chart = null
  #data = [[], [], [], []]

  /** @param onPoint - called with the time and the three rates under the pointer, or with null */
  constructor(container, onPoint) {
    this.#container = container
    this.#onPoint = onPoint
    new ResizeObserver(() => this.#resize()).observe(container)
    isDark.addEventListener('change', () => this.#create())
  }

  /** @param counts - three numbers a second, the last of them those of the second `end` */
  draw(counts, end) {
    this.#data = pointsOf(counts, end)
    if (this.#chart === null) this.#create()
    else this.#chart.setData(this.#data)
  }

  #resize() {
    const { clientWidth: width } = this.#container
    if (this.#chart !== null && width > 0 && width !== this.#chart.width)
      this.#chart.setSize({ width, height: HEIGHT })
  }

  #create() {
    this.#chart?.destroy()
    this.#chart = new uPlot(this.#options(), this.#data, this.#container)
  }

  #options() {
    const axis = {
      stroke: colour('muted'),
      font: '11px system-ui, sans-serif',
      grid: { stroke: colour('line'), width: 1 },
      ticks: { show: false },
    }
    const lines = OUTCOMES.map((outcome) => ({
      stroke: colour(outcome),
      width: 2,
      ...(outcome === 'degraded' ? { dash: [6, 4] } : { fill: `${colour(outcome)}1c` }),
      points: { show: false },
    }))
    return {
      width: this.#container.clientWidth || 300,
      height: HEIGHT,
      padding: [8, 18, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false, points: { size: 7 } },
      scales: { y: { range: (_chart, _least, most) => [0, Math.max(1, most * 1.1)] } },
      series: [{}, ...lines],
      axes: [
        { ...axis, space: 70, size: 28, values: (_chart, times) => times.map(clock) },
        { ...axis, space: 32, size: 44, values: (_chart, rates) => rates.map((rate) => shortRate(rate)) },
      ],
      hooks: { setCursor: [({ cursor: { idx } }) => this.#point(idx)] },
    }
  }

  #point(index) {
    const [times, ...lines] = this.#data
    this.#onPoint(
      index == null || times[index] === undefined
        ? null
        : { at: times[index] * 1000, rates: lines.map((line) => line[index] ?? 0) },
    )
  }
}

const clock = (seconds) => time(seconds * 1000)
const shortRate = (rate) => (rate >= 10_000 ? `${rate / 1000}k` : String(Number(rate.toFixed(2))))

/** Buckets begin at whole multiples of their length, so that a point stays what it is; the one under way is left out. */
function pointsOf(counts, end) {
  const seconds = counts.length / 3
  const times = []
  const lines = [[], [], []]
  const first = Math.ceil((end - seconds + 1) / BUCKET) * BUCKET
  for (let start = first; start + BUCKET - 1 <= end; start += BUCKET) {
    times.push(start)
    const offset = (start - (end - seconds + 1)) * 3
    lines.forEach((line, outcome) => {
      let sum = 0
      for (let i = 0; i < BUCKET; i += 1) sum += counts[offset + i * 3 + outcome]
      line.push(sum / BUCKET)
    })
  }
  // Nothing denied, nothing degraded: no line along the bottom.
  return [
    times,
    ...lines.map((line, i) => (i > 0 && line.every((rate) => rate === 0) ? line.fill(null) : line)),
  ]
}
