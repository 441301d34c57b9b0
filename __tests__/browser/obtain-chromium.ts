import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { findLoader } from '../servers/find-loader.js'
import { runCommand } from '../servers/run-command.js'
import { unpackDebianPackages } from '../servers/unpack-debian-packages.js'
import { ChromiumUnavailableError } from './chromium-unavailable-error.js'

/** A Chromium that can be run on this machine. Plain data: it travels to the test workers as JSON. */
export interface ChromiumInfo {
  readonly executable: string
  readonly environment: Record<string, string>
  /** As it answers `--version`. */
  readonly version: string
  /** How it was obtained, for people. */
  readonly source: string
}

/** The variable through which test workers learn of the browser: its `ChromiumInfo` as JSON. */
export const CHROMIUM_VARIABLE = 'RATE_LIMIT_TEST_CHROMIUM'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']
/** The program, and two families of fonts, so that pages look the same on every machine. */
const PACKAGES = ['chromium', 'fonts-inter', 'fonts-liberation']

/**
 * Chromium from the PATH, or else from the packages of this Debian, unpacked into the cache and not installed.
 *
 * @throws ChromiumUnavailableError when neither can be had; its message says why and what helps.
 */
export async function obtainChromium(): Promise<ChromiumInfo> {
  const reasons: string[] = []
  for (const obtain of [pathChromium, debianChromium]) {
    try {
      return await obtain()
    } catch (error) {
      reasons.push((error as Error).message)
    }
  }
  throw new ChromiumUnavailableError(reasons)
}

async function pathChromium(): Promise<ChromiumInfo> {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  for (const file of folders.flatMap((folder) => NAMES.map((name) => resolve(folder, name)))) {
    if (existsSync(file)) return chromiumAt(file, {}, file)
  }
  throw new Error(`PATH: no ${NAMES.join(', ')}`)
}

/** From the machine's own suite: Chromium starts itself anew, so it must run on the machine's own C library. */
async function debianChromium(): Promise<ChromiumInfo> {
  const system = await readFile('/etc/os-release', 'utf8').catch(() => '')
  const suite = /^VERSION_CODENAME="?([a-z]+)"?$/m.exec(system)?.[1]
  if (suite === undefined) throw new Error('Debian packages: this machine runs no release of Debian')
  const root = await unpackDebianPackages({ suite, packages: PACKAGES })
  const { libraries } = await findLoader(root)
  const fonts = join(root, 'fonts.conf')
  await writeFile(fonts, fontsConfiguration(root))
  // Those of PulseAudio lie in a folder of their own, which is only found where they were meant to be.
  const folders = libraries.flatMap((folder) => [folder, join(folder, 'pulseaudio')])
  const environment = { LD_LIBRARY_PATH: folders.join(':'), FONTCONFIG_FILE: fonts }
  return chromiumAt(join(root, 'usr/lib/chromium/chromium'), environment, `Debian ${suite}`)
}

async function chromiumAt(
  executable: string,
  environment: Record<string, string>,
  source: string,
): Promise<ChromiumInfo> {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
  const version = (await runCommand(['env', ...variables, executable, '--version'])).trim()
  return { executable, environment, version, source }
}

const fontsConfiguration = (root: string): string => `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${root}/usr/share/fonts</dir>
  <cachedir>${root}/fontconfig</cachedir>
  <alias><family>system-ui</family><prefer><family>Inter</family></prefer></alias>
  <alias><family>sans-serif</family><prefer><family>Inter</family></prefer></alias>
  <alias><family>ui-monospace</family><prefer><family>Liberation Mono</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>Liberation Mono</family></prefer></alias>
</fontconfig>
`
