import type { Plot } from '../section.js'
import { INK, renderSvg } from './render-svg.js'

// Told apart without seeing colours well, and dark enough on white. (After Okabe and Ito.)
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#56b4e9', '#e69f00', '#000000']

const LEGEND_LINE = 24

/** Draws lines as SVG. */
export function drawPlot({ title, xLabel, yLabel, logX, logY, series }: Plot): string {
  const axis = (name: string, log: boolean | undefined, nameGap: number) => ({
    type: log ? 'log' : 'value',
    name,
    nameLocation: 'middle',
    nameGap,
    nameTextStyle: { color: INK },
    axisLabel: { color: INK },
  })
  return renderSvg(
    {
      color: COLOURS,
      title: { text: title, left: 'center', textStyle: { fontSize: 15, color: INK } },
      // One below the other: how wide names are drawn is not known here.
      legend: { orient: 'vertical', left: 70, bottom: 5, textStyle: { color: INK } },
      grid: { left: 75, right: 25, top: 45, bottom: 65 + LEGEND_LINE * series.length },
      xAxis: axis(xLabel, logX, 30),
      yAxis: axis(yLabel, logY, 55),
      series: series.map(({ name, points }) => ({
        type: 'line',
        name,
        data: points.map(([x, y]) => [x, y]),
        symbolSize: 6,
      })),
    },
    390 + LEGEND_LINE * series.length,
  )
}
