import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** One entry of apt's list of sources. */
export interface AptEntry {
  readonly types: readonly string[]
  readonly uris: readonly string[]
  readonly suites: readonly string[]
  readonly components: readonly string[]
  /** The file with the keys, when the entry names one. */
  readonly signedBy: string | undefined
}

/** The sources that apt uses on this machine, in both of the forms it knows (`man sources.list`). */
export async function aptEntries(): Promise<AptEntry[]> {
  const folder = '/etc/apt/sources.list.d'
  const names = (await readdir(folder).catch(() => [])).sort()
  const entries: AptEntry[] = []
  for (const file of ['/etc/apt/sources.list', ...names.map((name) => join(folder, name))]) {
    const text = await readFile(file, 'utf8').catch(() => '')
    const lines = text.split('\n').filter((line) => !line.startsWith('#'))
    if (file.endsWith('.sources')) entries.push(...parseStanzas(lines))
    else if (file.endsWith('.list')) entries.push(...lines.flatMap(parseLine))
  }
  return entries
}

/** The form of `*.sources`: paragraphs of `Name: values`, where an indented line continues the one before. */
function parseStanzas(lines: readonly string[]): AptEntry[] {
  const stanzas = lines
    .join('\n')
    .replaceAll(/\n[ \t]+(?=\S)/g, ' ')
    .split(/\n\s*\n/)
  return stanzas.flatMap((stanza) => {
    const fields = new Map<string, string>()
    for (const line of stanza.split('\n')) {
      const [, name, value = ''] = /^([^\s:]+):\s*(.*)$/.exec(line) ?? []
      if (name) fields.set(name.toLowerCase(), value)
    }
    if (fields.get('enabled')?.trim() === 'no') return []
    return [
      {
        types: words(fields.get('types')),
        uris: words(fields.get('uris')),
        suites: words(fields.get('suites')),
        components: words(fields.get('components')),
        signedBy: fields.get('signed-by'),
      },
    ]
  })
}

/** The form of `*.list`: `deb [signed-by=/path] address suite component…`. */
function parseLine(line: string): AptEntry[] {
  const [, type, options = '', uri, suite, components] =
    /^\s*(deb|deb-src)\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+([^#]+)/.exec(line) ?? []
  if (!type || !uri || !suite) return []
  return [
    {
      types: [type],
      uris: [uri],
      suites: [suite],
      components: words(components),
      signedBy: /(?:^|\s)signed-by=(\S+)/.exec(options)?.[1],
    },
  ]
}

function words(text = ''): string[] {
  return text.split(/\s+/).filter(Boolean)
}
