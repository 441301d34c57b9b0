import { parseDictionary, serializeDictionary } from 'structured-headers'
import type { HeaderTarget } from './header-target.js'
import { addNamed, isFieldInteger, membersOf, memberText, setList } from './list-field.js'
import { isTighter, type ToldLimit, type ToldPolicy } from './told-limit.js'

/*
 * The forms in which limits are told, each frozen: a client that was written for one keeps working. All of
 * draft-ietf-httpapi-ratelimit-headers, which is a draft and not an RFC, by the number of its revision; and the
 * X-RateLimit fields from before it.
 */

/** How to tell policies and limits. Nothing in it throws; what cannot be written is left out. */
export interface HeaderForm {
  /** Adds to the policies that the response tells of already. */
  addPolicies(res: HeaderTarget, policies: readonly ToldPolicy[]): void
  /** Adds what is left of the limits to what the response tells of already. */
  addLimits(res: HeaderTarget, limits: readonly ToldLimit[]): void
}

/** Fields that tell what is left, in any form. A denial removes them, to speak of the violated limits only. */
export const LIMIT_FIELDS = [
  'RateLimit',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
] as const

/**
 * Since draft 8: two Lists of policies by name, `"login";q=15;w=900` and `"login";r=12;t=180`. A window that is no
 * whole number of seconds has no honest `w`: it is left out. `remaining` and `seconds` name the parameters of a limit.
 */
const namedLists = (remaining: string, seconds: string): HeaderForm => ({
  addPolicies(res, policies) {
    addNamed(res, 'RateLimit-Policy', policies.map(policyText))
  },
  addLimits(res, limits) {
    const textOf = (told: ToldLimit): string | null =>
      memberText([
        told.name,
        new Map([
          [remaining, told.remaining],
          [seconds, told.seconds],
        ]),
      ])
    addNamed(res, 'RateLimit', limits.map(textOf))
  },
})

/** Policies as `RateLimit-Policy` has them. PERF: they are the same with every answer, and a third of what its fields cost. */
const policyTexts = new WeakMap<ToldPolicy, string | null>()

function policyText(policy: ToldPolicy): string | null {
  let text = policyTexts.get(policy)
  if (text === undefined) {
    const { name, limit, windowSeconds } = policy
    const parameters = new Map([['q', limit]])
    if (Number.isInteger(windowSeconds)) parameters.set('w', windowSeconds)
    text = memberText([name, parameters])
    policyTexts.set(policy, text)
  }
  return text
}

/**
 * Drafts 6 and 7: `RateLimit-Policy: 5;w=60, 100;w=3600`. There `w` is required, so a window that is no whole number
 * of seconds is left out; and no two policies may have one quota: the longer window, which is the stricter, stays.
 */
function addQuotas(res: HeaderTarget, policies: readonly ToldPolicy[]): void {
  const members = membersOf(res, 'RateLimit-Policy', 'number')
  for (const { limit, windowSeconds } of policies) {
    if (!isFieldInteger(limit) || !isFieldInteger(windowSeconds)) continue
    const same = members.find(([quota]) => quota === limit)
    if (same === undefined) members.push([limit, new Map([['w', windowSeconds]])])
    else if (windowSeconds > Number(same[1].get('w') ?? 0)) same[1].set('w', windowSeconds)
  }
  setList(res, 'RateLimit-Policy', members)
}

/** What a form without lists tells already; not numbers when it tells nothing. */
type Told = Pick<ToldLimit, 'remaining' | 'seconds'>

/** A form that tells of one limit, the tightest: of a decision, and of all limiters on a route. */
const single = (
  addPolicies: HeaderForm['addPolicies'],
  read: (res: HeaderTarget) => Told,
  write: (res: HeaderTarget, told: ToldLimit) => void,
): HeaderForm => ({
  addPolicies,
  addLimits(res, limits) {
    const tellable = limits.filter((told) =>
      [told.limit, told.remaining, told.seconds].every((value) => isFieldInteger(value)),
    )
    const [first, ...others] = tellable
    if (first === undefined) return
    const told = others.reduce((a, b) => (isTighter(b, a) ? b : a), first)
    const { remaining, seconds } = read(res)
    const isTold = Number.isFinite(remaining) && Number.isFinite(seconds)
    // What is told already has let the request pass, and so it has no wait.
    if (!isTold || isTighter(told, { remaining, seconds, wait: 0 })) write(res, told)
  },
})

/** The number in a field; NaN without one. */
const numberIn = (res: HeaderTarget, field: string): number => Number(res.getHeader(field) ?? Number.NaN)

/** `RateLimit-Limit: 5`, `RateLimit-Remaining: 4`, `RateLimit-Reset: 60`. */
const threeFields = single(
  addQuotas,
  (res) => ({
    remaining: numberIn(res, 'RateLimit-Remaining'),
    seconds: numberIn(res, 'RateLimit-Reset'),
  }),
  (res, { limit, remaining, seconds }) => {
    res.setHeader('RateLimit-Limit', String(limit))
    res.setHeader('RateLimit-Remaining', String(remaining))
    res.setHeader('RateLimit-Reset', String(seconds))
  },
)

/** A Dictionary: `RateLimit: limit=5, remaining=4, reset=60`. */
const dictionary = single(
  addQuotas,
  (res) => {
    try {
      const members = parseDictionary(String(res.getHeader('RateLimit') ?? ''))
      return { remaining: Number(members.get('remaining')?.[0]), seconds: Number(members.get('reset')?.[0]) }
    } catch {
      return { remaining: Number.NaN, seconds: Number.NaN }
    }
  },
  (res, { limit, remaining, seconds }) => {
    res.setHeader('RateLimit', serializeDictionary({ limit, remaining, reset: seconds }))
  },
)

/** Now, in whole seconds since the epoch, rounded up as express-rate-limit does. */
const nowSeconds = (): number => Math.ceil(Date.now() / 1000)

/**
 * `X-RateLimit-Limit: 5`, `X-RateLimit-Remaining: 4`, `X-RateLimit-Reset: 1767614460`, which is seconds since the epoch,
 * with the `Date` by which a client of another clock can tell how long that is.
 */
export const LEGACY_FORM: HeaderForm = single(
  () => {},
  (res) => ({
    remaining: numberIn(res, 'X-RateLimit-Remaining'),
    seconds: numberIn(res, 'X-RateLimit-Reset') - nowSeconds(),
  }),
  (res, { limit, remaining, seconds }) => {
    res.setHeader('X-RateLimit-Limit', String(limit))
    res.setHeader('X-RateLimit-Remaining', String(remaining))
    res.setHeader('Date', new Date().toUTCString())
    res.setHeader('X-RateLimit-Reset', String(nowSeconds() + seconds))
  },
)

/** By the option's value. A later draft that renames the parameters is one line more. */
export const STANDARD_FORMS = {
  'draft-11': namedLists('r', 't'),
  'draft-8': namedLists('r', 't'),
  'draft-7': dictionary,
  'draft-6': threeFields,
} as const satisfies Record<string, HeaderForm>
