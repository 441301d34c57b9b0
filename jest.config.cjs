/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: 'node',
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
