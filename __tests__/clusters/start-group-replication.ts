import { debianProgram } from '../servers/debian-program.js'
import { freePort } from '../servers/free-port.js'
import type { PrivateServer } from '../servers/server.js'
import { startProcessServer } from '../servers/start-process-server.js'
import { type Cluster, runOn, untilTrue } from './cluster.js'

const GROUP = '3d0f7d1c-5f3e-4c0b-9a51-0c8a4ab1d2e7'

const GROUP_FLAGS = [
  '--performance-schema=ON', // where the plugin keeps its members
  '--gtid-mode=ON',
  '--enforce-gtid-consistency=ON',
  '--report-host=127.0.0.1',
  '--plugin-load-add=group_replication.so',
  `--loose-group-replication-group-name=${GROUP}`,
  '--loose-group-replication-single-primary-mode=OFF',
  '--loose-group-replication-start-on-boot=OFF',
  '--loose-group-replication-recovery-get-public-key=ON',
]

const ALL_ONLINE = `SELECT COUNT(*) = 3 FROM performance_schema.replication_group_members
  WHERE MEMBER_STATE = 'ONLINE'`

/**
 * Three MySQL nodes in a multi-primary group on 127.0.0.1.
 *
 * @example
 * const cluster = await startGroupReplication()
 * await cluster.nodes[2].signal('SIGKILL')
 * await cluster.stop()
 */
export async function startGroupReplication(): Promise<Cluster> {
  const program = await debianProgram('mysql')
  const ports = [await freePort(), await freePort(), await freePort()]
  const seeds = ports.map((port) => `127.0.0.1:${port}`)
  const started = await Promise.allSettled(
    seeds.map((seed, i) =>
      startProcessServer(program, {
        flags: [
          ...GROUP_FLAGS,
          `--server-id=${i + 1}`,
          `--loose-group-replication-local-address=${seed}`,
          `--loose-group-replication-group-seeds=${seeds.join(',')}`,
        ],
      }),
    ),
  )
  const nodes = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()))
  }
  try {
    for (const result of started) if (result.status === 'rejected') throw result.reason
    const [first, ...others] = nodes as [PrivateServer, ...PrivateServer[]]
    await runOn(first, ['SET GLOBAL group_replication_bootstrap_group = ON', 'START GROUP_REPLICATION'])
    await runOn(first, ['SET GLOBAL group_replication_bootstrap_group = OFF'])
    await Promise.all(others.map(joinGroup))
    for (const node of nodes) await untilTrue(node, ALL_ONLINE)
    return {
      name: 'Group Replication',
      nodes,
      catchUp: `SET SESSION group_replication_consistency = 'BEFORE'`,
      isolate: (node) => runOn(node, ['STOP GROUP_REPLICATION']),
      async rejoin(node) {
        await joinGroup(node)
        await untilTrue(node, ALL_ONLINE)
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Lets a node into the group, also after it has left it. */
const joinGroup = (node: PrivateServer): Promise<void> =>
  runOn(node, [
    `CHANGE REPLICATION SOURCE TO SOURCE_USER = 'root' FOR CHANNEL 'group_replication_recovery'`,
    'START GROUP_REPLICATION',
  ])
