import type { Command } from 'commander'

/** Adds what says how KEY is meant, the same for every command that takes one. */
export const withSelectionOptions = (command: Command): Command =>
  command
    .option('--name <limiter>', 'only this limiter; login@900 for a fixed window of 900 seconds')
    .option('--parts', 'KEY is a JSON array: a key of several parts')
    .option('--stored', 'KEY is the stored form, as top and --json show it')
    .option('--hashed', 'for limiters with hashKeys, whose secret is in RATE_LIMIT_HASH_KEYS')
