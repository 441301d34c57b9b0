import type { Request } from 'express'

/** The header that names the client. */
export const CLIENT_HEADER = 'x-client'

/** The key of every contender: a client that the load names. */
export const clientOf = (req: Request): string => req.get(CLIENT_HEADER) ?? ''
