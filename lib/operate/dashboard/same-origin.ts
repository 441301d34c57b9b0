import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Request, Response } from 'express'

/** The cookie is the token's other half: only a page of this origin gets to know both. */
const COOKIE = 'rate-limit-dashboard'
const TOKEN = /^[\w-]{43}$/
const HEADER = 'X-Rate-Limit-Token'

/**
 * Whether the browser says that a page of another origin sent the request. Where it does not say (before 2023, or without
 * TLS), its `Origin` must be the host that was asked. What sends neither is no browser, and acts for nobody else.
 */
export function isForeign(req: Request): boolean {
  const site = req.get('Sec-Fetch-Site')
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  const origin = req.get('Origin')
  if (origin === undefined) return false
  // What a proxy says of the host counts where Express is told to trust it.
  return !URL.canParse(origin) || !hostsOf(req).includes(new URL(origin).host)
}

function hostsOf(req: Request): string[] {
  const hosts = [req.get('Host') ?? '']
  const trust = req.app.get('trust proxy fn') as (address: string | undefined, hops: number) => boolean
  if (trust(req.socket.remoteAddress, 0))
    hosts.push((req.get('X-Forwarded-Host') ?? '').split(',')[0]?.trim() ?? '')
  return hosts
}

/**
 * The token for this browser's actions, which it must send back in a header: no form and no other origin can. It lies in
 * a cookie, not in this process, so that any process behind a load balancer knows it again.
 */
export function issueToken(req: Request, res: Response): string {
  const known = cookieOf(req)
  if (known !== null) return known
  const token = randomBytes(32).toString('base64url')
  const secure = req.secure ? '; Secure' : ''
  // No path: the browser takes the folder it asked, which a proxy may have renamed.
  res.append('Set-Cookie', `${COOKIE}=${token}; HttpOnly; SameSite=Strict${secure}`)
  return token
}

/** Whether the request brings the token that its browser was given. */
export function hasToken(req: Request): boolean {
  const cookie = cookieOf(req)
  const header = req.get(HEADER) ?? ''
  if (cookie === null || !TOKEN.test(header)) return false
  return timingSafeEqual(Buffer.from(cookie), Buffer.from(header))
}

function cookieOf(req: Request): string | null {
  for (const pair of (req.get('Cookie') ?? '').split(';')) {
    const [name, value = ''] = pair.trim().split('=', 2)
    if (name === COOKIE && TOKEN.test(value)) return value
  }
  return null
}
