import type { Policy, Store } from '../stores/store.js'
import { Lane } from './lane.js'
import { namespaceOf } from './storage-key.js'

/** What comes after the namespace in the forms of a stored key. */
const MARKS = [':', '[', '"', '~']

/**
 * Forgets all keys of a policy, one after the other, as `reset` does: other processes see it within a second. What is hit
 * meanwhile may be forgotten or not.
 *
 * @throws TypeError for a store that cannot list its keys; StoreError when it fails, and then some are forgotten.
 */
export async function resetNamespace(store: Store, policy: Policy): Promise<void> {
  if (store.storedKeys === undefined) throw new TypeError('This store has no `storedKeys`')
  const lane = Lane.of(store)
  for (const mark of MARKS) {
    for await (const keys of store.storedKeys(namespaceOf(policy) + mark)) {
      for (const key of keys) await lane.reset(key)
    }
  }
}
