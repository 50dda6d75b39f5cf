// Makes a benchmark runnable on a fresh clone: installs the peers, builds the release addon beside the debug one, and
// has sluicegate load it.
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const here = path.dirname(fileURLToPath(import.meta.url))
const root = path.dirname(here)
const library = { linux: 'libsluicegate.so', darwin: 'libsluicegate.dylib', win32: 'sluicegate.dll' }

function run(command, args, cwd) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] })
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`)
}

/** @returns {{ sluicegate: typeof import('sluicegate'), peer: NodeRequire }} */
export function setup() {
  if (!existsSync(path.join(here, 'node_modules'))) run('npm', ['ci', '--no-audit', '--no-fund'], here)
  run('cargo', ['build', '--release', '--quiet'], root)
  const build = path.join(here, 'build')
  mkdirSync(build, { recursive: true })
  const addon = path.join(build, 'sluicegate.node')
  const target = process.env.CARGO_TARGET_DIR ?? path.join(root, 'target')
  copyFileSync(path.join(target, 'release', library[process.platform]), addon)
  process.env.NAPI_RS_NATIVE_LIBRARY_PATH = addon
  const require = createRequire(import.meta.url)
  return { sluicegate: require('../index.js'), peer: require }
}
