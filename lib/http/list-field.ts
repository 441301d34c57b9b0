import type { ServerResponse } from 'node:http'
import { type Item, parseList, serializeList } from 'structured-headers'

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
export function membersOf(res: ServerResponse, field: string, type: 'string' | 'number'): Item[] {
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
export function setList(res: ServerResponse, field: string, members: readonly Item[]): void {
  if (members.length > 0) res.setHeader(field, serializeList([...members]))
}

/** Adds named members to a List field, so that several limiters on a route make one valid field. */
export function addNamed(res: ServerResponse, field: string, members: readonly Item[]): void {
  const sendable = members.filter(isSerializable)
  if (sendable.length > 0) setList(res, field, [...membersOf(res, field, 'string'), ...sendable])
}

/** A member that would break the field is left out: the others stay readable. */
function isSerializable(member: Item): boolean {
  for (const value of member[1].values())
    if (typeof value === 'number' && !isFieldInteger(value)) return false
  try {
    serializeList([member])
    return true
  } catch {
    return false
  }
}
