import type { NextFunction, Response } from 'express'
import { chartFolder, pageFolder } from './page-folder.cjs'

/** What the page consists of, by the path below it. */
const FILES: Record<string, { folder: () => string; file: string }> = {
  '/': { folder: () => pageFolder, file: 'dashboard.html' },
  '/assets/uplot.js': { folder: chartFolder, file: 'uPlot.iife.min.js' },
  '/assets/uplot.css': { folder: chartFolder, file: 'uPlot.min.css' },
}
for (const file of [
  'api.js',
  'base.css',
  'charts.js',
  'dashboard.js',
  'dialogs.js',
  'element.js',
  'format.js',
  'icon.svg',
  'key-table.js',
  'layout.css',
  'limit-card.css',
  'limit-card.js',
  'search.js',
  'store-panel.js',
  'stream.js',
  'tables.css',
]) {
  FILES[`/assets/${file}`] = { folder: () => pageFolder, file }
}

/**
 * Nothing but this origin's own files, no inline script or style, in no other site's frame. `'self'` must be enough for
 * the panels of the application, too. Text never becomes HTML.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

/** Whether a path, relative to where the dashboard is mounted, is one of the page's files. */
export const isPageFile = (path: string): boolean => Object.hasOwn(FILES, path)

/** For every answer, so that none of them is of use outside of the page. */
export function setSecurityHeaders(res: Response): void {
  res.setHeader('Content-Security-Policy', POLICY)
  res.setHeader('X-Content-Type-Options', 'nosniff')
  res.setHeader('X-Frame-Options', 'DENY')
  res.setHeader('Referrer-Policy', 'no-referrer')
  res.setHeader('Cross-Origin-Resource-Policy', 'same-origin')
  res.setHeader('Cross-Origin-Opener-Policy', 'same-origin')
}

/** Sends a file of the page; browsers keep it, but ask each time whether they still may. */
export function sendPageFile(path: string, res: Response, next: NextFunction): void {
  const { folder, file } = FILES[path] as (typeof FILES)[string]
  res.setHeader('Cache-Control', 'private, no-cache')
  res.sendFile(file, { root: folder(), cacheControl: false }, (error?: Error & { code?: string }) => {
    // Who leaves early has seen enough.
    if (error && error.code !== 'ECONNABORTED' && !res.headersSent) next(error)
  })
}
