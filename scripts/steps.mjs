// What the scripts share: running a command, installing the dependencies, building the addon.
// Node's own modules only, for a fresh clone has no others.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))
const onWindows = process.platform === 'win32'

/** Runs a command in the project's root with its output shown. Commands of the dependencies are found without `npx`. */
export function run(command, ...args) {
  console.log(`$ ${[command, ...args].join(' ')}`)
  return spawn(command, args, 'inherit').status === 0
}

/** The output of a command, or undefined when it cannot be run or fails. */
export function read(command, ...args) {
  const { status, stdout } = spawn(command, args, ['ignore', 'pipe', 'ignore'])
  return status === 0 ? stdout.toString() : undefined
}

function spawn(command, args, stdio) {
  const [file, before] = command === 'npm' ? npm() : [command, []]
  const bin = path.join(root, 'node_modules', '.bin')
  const env = { ...process.env, PATH: `${bin}${path.delimiter}${process.env.PATH}` }
  // napi names the target whenever it builds. Cargo keeps what it builds for a named target apart, so without the same
  // name here everything would be built twice.
  if (file === 'cargo') env.CARGO_BUILD_TARGET ??= hostTarget()
  // On Windows the dependencies' commands are scripts of its shell.
  const shell = onWindows && file !== process.execPath && file !== 'cargo'
  return spawnSync(file, [...before, ...args], { cwd: root, env, stdio, shell, maxBuffer: 1 << 26 })
}

/** The npm that runs this script, or the one on the path. */
function npm() {
  const script = process.env.npm_execpath
  return script?.endsWith('.js') ? [process.execPath, [script]] : ['npm', []]
}

let host

function hostTarget() {
  if (host === undefined) {
    const said = read('rustc', '-vV')
    if (said === undefined) throw new Failure('Rust is needed to build from source: https://rustup.rs')
    host = /^host: (.+)$/m.exec(said)[1].trim()
  }
  return host
}

/** Why a script ends, without a stack that would say nothing. */
export class Failure extends Error {}

/** Installs the dependencies when they are missing or are not those of the lockfile. */
export function install() {
  if (isInstalled()) return
  console.log('Installing the dependencies…')
  if (!run('npm', 'ci', '--no-audit', '--no-fund')) throw new Failure('npm ci failed')
}

/** Whether node_modules holds what the lockfile says. npm keeps a lockfile of what it installed. */
function isInstalled() {
  const installed = path.join(root, 'node_modules', '.package-lock.json')
  if (!existsSync(installed)) return false
  const here = packagesOf(installed)
  const wanted = Object.entries(packagesOf(path.join(root, 'package-lock.json')))
  return wanted.every(([place, { version, integrity, optional }]) => {
    if (place === '') return true
    const found = here[place]
    return found === undefined
      ? optional === true
      : found.version === version && found.integrity === integrity
  })
}

function packagesOf(lockfile) {
  return JSON.parse(readFileSync(lockfile, 'utf8')).packages ?? {}
}

/** Builds the addon when it is missing or older than the Rust sources. */
export function build() {
  if (isBuilt()) return
  console.log(
    'Building the native addon in the debug profile, a minute or two (`npm run build` makes the fast one)…'
  )
  hostTarget()
  if (!run('npm', 'run', '--silent', 'build:debug')) throw new Failure('the addon could not be built')
}

function isBuilt() {
  const prefix = `sluicegate.${process.platform}-${process.arch}`
  const addons = readdirSync(root).filter((name) => name.startsWith(prefix) && name.endsWith('.node'))
  if (addons.length === 0 || !existsSync(path.join(root, 'binding.js'))) return false
  const built = Math.max(...addons.map((name) => changed(path.join(root, name))))
  const sources = ['Cargo.toml', 'Cargo.lock', 'build.rs', 'src'].map((name) => path.join(root, name))
  return sources.every((source) => newest(source) <= built)
}

/** When a file, or the newest file of a directory, was changed last. A file that was removed changes its directory. */
function newest(file) {
  if (!statSync(file).isDirectory()) return changed(file)
  const inside = readdirSync(file).map((name) => newest(path.join(file, name)))
  return Math.max(changed(file), ...inside)
}

function changed(file) {
  return statSync(file).mtimeMs
}

/** Runs the Rust tests. */
export function testRust() {
  return run('cargo', 'test')
}

/** Runs the Node tests, all of `__test__/`. */
export function testNode() {
  const files = readdirSync(path.join(root, '__test__')).filter((name) => name.endsWith('.test.js'))
  // One by one: directories mean different things to `node --test` in different versions.
  return run(process.execPath, '--test', ...files.sort().map((name) => path.join('__test__', name)))
}

/** Runs a script's steps; a failure ends the process with its message. */
export async function main(steps) {
  try {
    checkNode()
    await steps()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    console.error(error.message)
    process.exitCode = 1
  }
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 17)) return
  throw new Failure(`Node.js 20.17 or newer is needed; this is ${process.versions.node}`)
}
