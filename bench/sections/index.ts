import type { Section } from '../section.js'

/** Every part of the benchmark, in the order in which they run and are reported. */
export const sections: readonly Section[] = []
