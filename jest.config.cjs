/**
 * Two files at a time, since most of them wait more than they compute: 14 minutes for all on two cores, where one at a time
 * takes 23. Each worker has a pair of servers; a server of DATABASE_URL is one, for one file at a time.
 *
 * @type {import('jest').Config}
 */
module.exports = {
  testEnvironment: 'node',
  maxWorkers: process.env.DATABASE_URL ? 1 : 2,
  // A process that has run many files is slow: on Node.js 20 each asynchronous context that one of them has used costs every
  // promise of the next.
  workerIdleMemoryLimit: '500MB',
  roots: ['<rootDir>/__tests__'],
  testMatch: ['**/*.test.ts'],
  // These take minutes: npm run test:cluster, npm run test:faults, npm run test:package.
  testPathIgnorePatterns: [
    '/node_modules/',
    '<rootDir>/__tests__/clusters/',
    '<rootDir>/__tests__/faults/',
    '<rootDir>/__tests__/package/',
  ],
  transform: { '^.+\\.ts$': ['@swc/jest', { jsc: { target: 'es2022', parser: { syntax: 'typescript' } } }] },
  moduleNameMapper: {
    '^express-sql-rate-limit$': '<rootDir>/lib/index.ts',
    '^(\\.{1,2}/.*)\\.js$': '$1',
  },
  globalSetup: '<rootDir>/__tests__/servers/global-setup.ts',
  globalTeardown: '<rootDir>/__tests__/servers/global-teardown.ts',
  // Whatever keeps the runner alive after its last test shows on a developer's machine, and must not hold up CI for hours.
  forceExit: process.env.CI === 'true',
  testTimeout: 30_000,
  reporters: ['default', '<rootDir>/__tests__/plain-summary-reporter.cjs'],
}
