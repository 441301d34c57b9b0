import type { Policy } from './store.js'

/** Whether a policy's hits are in the event log. */
export const isLogged = ({ algorithm, audit }: Policy): boolean => algorithm === 'sliding-window' || audit
