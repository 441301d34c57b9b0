import { InvalidArgumentError } from 'commander'

/** A parser for arguments that are whole numbers between two bounds. */
export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`)
  }
