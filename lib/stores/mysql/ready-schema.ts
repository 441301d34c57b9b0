import type { KeptUsage } from '../kept-usage.js'
import type { Connection } from './connection.js'
import { checkSchema, installSchema } from './install.js'
import type { Session } from './session.js'
import { agreeOnUsage } from './usage-units.js'

/**
 * Looks at the schema, makes what is missing of it if it may, and learns whose usage is kept.
 *
 * @throws StoreError `ERR_STORE_SCHEMA` names what is missing or different and the statement that fixes it.
 */
export async function readySchema(
  connection: Connection,
  session: Session,
  install: boolean,
  usage: KeptUsage,
): Promise<void> {
  if (install) await installSchema(connection, session, usage.isAsked)
  else await checkSchema(connection, usage.isAsked)
  await agreeOnUsage(connection, session, usage)
}
