import { type Item, parseList, serializeItem, serializeList } from 'structured-headers'
import type { HeaderTarget } from './header-target.js'

/** The highest integer of a structured field: 15 digits (RFC 9651, section 3.3.1). */
const HIGHEST_INTEGER = 999_999_999_999_999

/** Whether a number may stand in a field: whole, not negative, at most 15 digits. */
export const isFieldInteger = (value: number): boolean =>
  Number.isInteger(value) && value >= 0 && value <= HIGHEST_INTEGER

/**
 * The members of a List field that is set already, by an earlier limiter or by other code, also as several lines.
 * None when one of them is not of type `type`, or the field is broken: a client must ignore such a field as a whole
 * (RFC 9651, section 4.2), so adding to it would lose what is added.
 */
export function membersOf(res: HeaderTarget, field: string, type: 'string' | 'number'): Item[] {
  const before = res.getHeader(field)
  if (before === undefined) return []
  try {
    const members = parseList(String(before))
    return members.every((member): member is Item => typeof member[0] === type) ? members : []
  } catch {
    return []
  }
}

/** Sets a List field in canonical form; an empty list is no field (RFC 9651, section 4.1). */
export function setList(res: HeaderTarget, field: string, members: readonly Item[]): void {
  if (members.length > 0) res.setHeader(field, serializeList([...members]))
}

/** A member of a List as it is written; null when it cannot be sent. */
export function memberText(member: Item): string | null {
  for (const value of member[1].values()) if (typeof value === 'number' && !isFieldInteger(value)) return null
  try {
    return serializeItem(member)
  } catch {
    return null
  }
}

/**
 * Adds named members to a List field, so that several limiters on a route make one valid field. A member that would
 * break the field is left out: the others stay readable.
 *
 * @param members - as `memberText` has them
 */
export function addNamed(res: HeaderTarget, field: string, members: readonly (string | null)[]): void {
  const added = members.filter((text) => text !== null)
  if (added.length === 0) return
  const before = membersOf(res, field, 'string')
  // In canonical form members are joined so (RFC 9651, section 4.1.1).
  res.setHeader(field, (before.length > 0 ? [serializeList(before), ...added] : added).join(', '))
}
