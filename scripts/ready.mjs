// `npm run ready`: every gate, in the order of CI. All of them run, whatever fails; what was skipped is
// said before the tests, what failed last of all.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import path from 'node:path'

import { Failure, install, main, read, root, run, testNode, testRust } from './steps.mjs'

/** What a build writes and the repository keeps. */
const GENERATED = ['binding.js', 'binding.d.ts', 'npm', 'package-lock.json', 'Cargo.lock']

/** Each gate passes (true), fails (false), or says in text why it is skipped. */
const GATES = [
  ['rustfmt', () => run('cargo', 'fmt', '--check')],
  ['clippy', () => run('cargo', 'clippy', '--all-targets', '--', '-D', 'warnings')],
  [
    'clippy without features',
    () => run('cargo', 'clippy', '--all-targets', '--no-default-features', '--', '-D', 'warnings')
  ],
  ['each feature alone', () => features().every((name) => run('cargo', 'check', '--lib', ...only(name)))],
  ['prettier', () => run('prettier', '--check', '.')],
  ['oxlint', () => run('oxlint')],
  ['types', () => run('npm', 'run', '--silent', 'types')],
  [
    'generated files',
    () =>
      run('npm', 'run', '--silent', 'build:debug') &&
      run('napi', 'create-npm-dirs') &&
      run('git', 'diff', '--exit-code', '--', ...GENERATED)
  ],
  ['lockfiles', checkLockfiles],
  ['package', checkPackage],
  ['spelling', () => (has('typos') ? run('typos') : 'typos is not installed (pip install typos)')],
  ['luacheck', luacheck],
  [
    'cargo-deny',
    () =>
      has('cargo-deny')
        ? run('cargo', 'deny', 'check', 'licenses', 'bans', 'sources')
        : 'cargo-deny is not installed (cargo install cargo-deny)'
  ]
]

const TESTS = [
  ['Rust tests', testRust],
  ['Node tests', testNode]
]

await main(() => {
  install()
  const failed = []
  const skipped = []
  const pass = ([name, gate]) => {
    console.log(`\n── ${name}`)
    const passed = gate()
    if (typeof passed === 'string') skipped.push(`${name}: ${passed}`)
    else if (!passed) failed.push(name)
  }
  GATES.forEach(pass)
  // Said before the tests, whose own last lines are the last of all.
  for (const reason of skipped) console.log(`skipped ${reason}`)
  if (failed.length === 0) console.log(`all other gates passed`)
  TESTS.forEach(pass)
  if (failed.length > 0) throw new Failure(`not ready: ${failed.join(', ')}`)
})

function features() {
  const { packages } = JSON.parse(read('cargo', 'metadata', '--no-deps', '--format-version', '1'))
  return Object.keys(packages[0].features).filter((name) => name !== 'default')
}

function only(feature) {
  return ['--no-default-features', '--features', feature]
}

function has(command) {
  return read(command, '--version') !== undefined
}

function luacheck() {
  if (!existsSync(path.join(root, 'lua'))) return report([], 'there is no Lua yet')
  return has('luacheck') ? run('luacheck', 'lua') : 'luacheck is not installed (apt-get install lua-check)'
}

/** Installing must run nobody's code, and must work with whatever registry the machine is set up for. */
function checkLockfiles() {
  const wrong = []
  let count = 0
  for (const lockfile of ['package-lock.json', 'benchmark/package-lock.json']) {
    const { packages } = JSON.parse(readFileSync(path.join(root, lockfile), 'utf8'))
    for (const [place, { resolved, hasInstallScript }] of Object.entries(packages)) {
      count += 1
      if (/^https?:/.test(resolved ?? '')) wrong.push(`${lockfile}: ${place} names a registry: ${resolved}`)
      if (hasInstallScript) wrong.push(`${lockfile}: ${place} has an install script`)
    }
  }
  return report(wrong, `${count} entries`)
}

/** npm leaves out what it does not find, so that a package can be published without its loader. */
function checkPackage() {
  const { files } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
  const wrong = files.filter((name) => !existsSync(path.join(root, name))).map((name) => `${name} is missing`)
  const packed = read('npm', 'pack', '--dry-run', '--ignore-scripts', '--json')
  const names = new Set(packed === undefined ? [] : JSON.parse(packed)[0].files.map((file) => file.path))
  const library = readdirSync(path.join(root, 'lib')).map((name) => `lib/${name}`)
  for (const name of ['index.js', 'index.d.ts', 'binding.js', 'README.md', 'LICENSE', ...library]) {
    if (!names.has(name)) wrong.push(`${name} is not in the package`)
  }
  for (const name of names) if (name.endsWith('.node')) wrong.push(`${name} belongs to a platform's package`)
  return report(wrong, `${names.size} files`)
}

function report(wrong, good) {
  console.log(wrong.length === 0 ? good : wrong.join('\n'))
  return wrong.length === 0
}
