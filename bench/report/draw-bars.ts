import type { Bars } from '../section.js'
import { number } from './number.js'
import { INK, renderSvg } from './render-svg.js'

const OURS = '#0072b2'
const OTHERS = '#8c959f'
/** How names of this package's contenders begin. */
const OUR_NAME = 'express-sql-rate-limit'

/** Draws bars as SVG, ours in another colour, each with its figure. */
export function drawBars({ title, valueLabel, bars, log }: Bars): string {
  return renderSvg(
    {
      title: { text: title, left: 'center', textStyle: { fontSize: 15, color: INK } },
      // Names are long, and how long they are drawn is not known here.
      grid: { left: 300, right: 80, top: 45, bottom: 55 },
      xAxis: {
        type: log ? 'log' : 'value',
        name: valueLabel,
        nameLocation: 'middle',
        nameGap: 30,
        nameTextStyle: { color: INK },
        axisLabel: { color: INK },
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: bars.map(({ name }) => name),
        axisLabel: { color: INK },
      },
      series: [
        {
          type: 'bar',
          barMaxWidth: 22,
          data: bars.map(({ name, value }) => ({
            value,
            itemStyle: { color: name.startsWith(OUR_NAME) ? OURS : OTHERS },
            label: { show: true, position: 'right', color: INK, formatter: number(value) },
          })),
        },
      ],
    },
    110 + 32 * bars.length,
  )
}
