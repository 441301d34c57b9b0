/**
 * Prints a run's result in plain words, `12 passed, 0 failed`, alone on a line, for programs that cannot read Jest's
 * own summary.
 */
module.exports = class PlainSummaryReporter {
  onRunComplete(_contexts, results) {
    const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, numPendingTests, numTodoTests } =
      results
    // A file that does not compile has no tests, and has failed all the same.
    const failed = numFailedTests + numRuntimeErrorTestSuites
    const skipped = numPendingTests + numTodoTests
    process.stdout.write(
      `\n${numPassedTests} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}\n`,
    )
  }
}
