import { type EChartsCoreOption, init } from 'echarts'

/** Text of plots: nearly black. */
export const INK = '#1f2328'

/**
 * Renders a chart as SVG, without a browser. Its background is white, not transparent: it must be read on light pages
 * and on dark ones, and an image does not learn which one it stands on.
 */
export function renderSvg(option: EChartsCoreOption, height: number): string {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: 760, height })
  chart.setOption({ animation: false, backgroundColor: '#ffffff', ...option })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return svg
}
