/** What a measurement is told apart by. Never a key: there are as many of those as clients. */
export type MetricAttributes = Record<string, string>

/** How an instrument is made, in the words of OpenTelemetry. */
export interface MetricOptions {
  description?: string
  unit?: string
  advice?: { explicitBucketBoundaries?: number[] }
}

/** Observes a value when somebody collects. */
export type MetricCallback = (result: { observe(value: number, attributes?: MetricAttributes): void }) => void

/**
 * The part of OpenTelemetry's `Meter` that is used here. Every meter of @opentelemetry/api 1.x is one; described rather
 * than imported, so that this package loads and compiles where that one is not installed.
 */
export interface Meter {
  createCounter(
    name: string,
    options?: MetricOptions,
  ): { add(value: number, attributes?: MetricAttributes): void }
  createHistogram(
    name: string,
    options?: MetricOptions,
  ): { record(value: number, attributes?: MetricAttributes): void }
  createObservableGauge(
    name: string,
    options?: MetricOptions,
  ): {
    addCallback(callback: MetricCallback): void
    removeCallback(callback: MetricCallback): void
  }
}
