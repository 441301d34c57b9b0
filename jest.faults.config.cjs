const base = require('./jest.config.cjs')

/**
 * What goes wrong between an application and its database, on real servers: `npm run test:faults`. The tests look at the
 * clock, so they run one at a time.
 *
 * @type {import('jest').Config}
 */
module.exports = {
  ...base,
  roots: ['<rootDir>/__tests__/faults'],
  testPathIgnorePatterns: [],
  maxWorkers: 1,
  testTimeout: 60_000,
}
