const base = require('./jest.config.cjs')

/**
 * The package as it is published, installed in empty folders and run by every Node.js it is made for: `npm run test:package`.
 * It needs the registry, and no database.
 *
 * @type {import('jest').Config}
 */
const { globalSetup, globalTeardown, ...rest } = base
module.exports = {
  ...rest,
  roots: ['<rootDir>/__tests__/package'],
  testPathIgnorePatterns: [],
}
