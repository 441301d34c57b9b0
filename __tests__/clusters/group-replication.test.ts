import { clusterContract } from './cluster-contract.js'
import { startGroupReplication } from './start-group-replication.js'

describe('three nodes of a multi-primary Group Replication', () => clusterContract(startGroupReplication))
