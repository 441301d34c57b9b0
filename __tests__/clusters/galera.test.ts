import { clusterContract } from './cluster-contract.js'
import { startGalera } from './start-galera.js'

describe('three Galera nodes', () => clusterContract(startGalera))
