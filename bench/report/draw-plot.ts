import { init } from 'echarts'
import type { Plot } from '../section.js'

// Told apart without seeing colours well, and dark enough on white. (After Okabe and Ito.)
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#56b4e9', '#e69f00', '#000000']

/**
 * Draws a plot as SVG. Its background is white, not transparent: it must be read on light pages and on dark ones,
 * and an image does not learn which one it stands on.
 */
export function drawPlot({ title, xLabel, yLabel, logX, logY, series }: Plot): string {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: 760, height: 420 })
  const axis = (name: string, log: boolean | undefined, gap: number) =>
    ({
      type: log ? 'log' : 'value',
      name,
      nameLocation: 'middle',
      nameGap: gap,
      scale: log === true,
    }) as const
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    color: COLOURS,
    title: { text: title, left: 'center', textStyle: { fontSize: 15, color: '#1f2328' } },
    legend: { bottom: 0, textStyle: { color: '#1f2328' } },
    grid: { left: 70, right: 25, top: 45, bottom: 85 },
    xAxis: axis(xLabel, logX, 30),
    yAxis: axis(yLabel, logY, 50),
    series: series.map(({ name, points }) => ({
      type: 'line',
      name,
      data: points.map(([x, y]) => [x, y]),
      symbolSize: 6,
    })),
  })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return svg
}
