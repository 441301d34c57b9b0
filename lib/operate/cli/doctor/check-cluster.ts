import { type Finding, note, ok, problem } from './finding.js'
import { isOn, type MysqlFacts } from './mysql-facts.js'

/** Whether the server is a node of a multi-primary cluster, and one that works. */
export function checkCluster({ global, status }: MysqlFacts): Finding {
  if (isOn(global.get('wsrep_on'))) return galera(status)
  if ((global.get('group_replication_group_name') ?? '') !== '') {
    const single = isOn(global.get('group_replication_single_primary_mode'))
    return note(
      'cluster',
      `A node of Group Replication, ${single ? 'with one primary' : 'where every node takes writes'}.`,
      'Nothing to set. Put all nodes into the address, with commas between them, so that a new primary is found; and let all machines keep their clocks by NTP. See docs/clusters.md.',
    )
  }
  return ok('cluster', 'No cluster: neither Galera nor Group Replication.')
}

function galera(status: ReadonlyMap<string, string>): Finding {
  const state = status.get('wsrep_local_state_comment') ?? 'unknown'
  const part = status.get('wsrep_cluster_status') ?? 'unknown'
  const size = status.get('wsrep_cluster_size') ?? '?'
  const isReady = isOn(status.get('wsrep_ready')) && state === 'Synced' && part === 'Primary'
  const found = `A node of Galera, ${state}, in a ${part} part of ${size} nodes.`
  if (isReady) {
    return note(
      'cluster',
      found,
      'Nothing to set. Each statement is a round trip here, so a decision takes longer than on a single server. Put all nodes into the address, with commas between them; and let all machines keep their clocks by NTP. See docs/clusters.md.',
    )
  }
  return problem(
    'cluster',
    found,
    'It does not take part in the cluster at the moment: it still copies the data, or has lost the majority of nodes. Wait until it is Synced, or use another node. If no node is Primary, the cluster must be started again (galera_new_cluster on the node with the newest data).',
  )
}
