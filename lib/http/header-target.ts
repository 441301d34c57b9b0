/** Where fields of a response are set. A response of node:http is one, and so is one of Express. */
export interface HeaderTarget {
  getHeader(name: string): number | string | readonly string[] | undefined
  setHeader(name: string, value: string): unknown
  removeHeader(name: string): unknown
}
