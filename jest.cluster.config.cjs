const base = require('./jest.config.cjs')

/**
 * The tests on real clusters: `npm run test:cluster`. Each file starts its own nodes, and one cluster at a time is
 * enough for a machine of two cores.
 *
 * @type {import('jest').Config}
 */
const { globalSetup, globalTeardown, ...rest } = base
module.exports = {
  ...rest,
  roots: ['<rootDir>/__tests__/clusters'],
  testPathIgnorePatterns: [],
  maxWorkers: 1,
}
