// The documentation, held to the code: error codes, options, layers, links, cases, and what a fresh clone is told to run.
'use strict'

const assert = require('node:assert/strict')
const fs = require('node:fs')
const path = require('node:path')
const { test } = require('node:test')

const { errorCodes } = require('../binding.js')
const { CODES } = require('../lib/errors.js')
const { createRateLimiter, expressRateLimit, rateLimitPlugin } = require('..')

const ROOT = path.join(__dirname, '..')
const PAGES = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  ...fs.readdirSync(path.join(ROOT, 'docs')).map((name) => `docs/${name}`)
].filter((name) => name.endsWith('.md'))

function read(name) {
  return fs.readFileSync(path.join(ROOT, name), 'utf8')
}

/** What `pattern`'s group finds in a text, each once, sorted. */
function all(text, pattern) {
  return [...new Set([...text.matchAll(pattern)].map((match) => match[1]))].sort()
}

test('docs/error-codes.md has each code that can be raised, once, and no other', () => {
  const rows = [...read('docs/error-codes.md').matchAll(/^\| `(ERR_\w+)` \|/gm)].map((match) => match[1])
  assert.deepEqual(rows.sort(), [...new Set([...errorCodes(), ...CODES])].sort())
})

test('lib raises no code that its list does not have', () => {
  const sources = fs.readdirSync(path.join(ROOT, 'lib')).map((name) => read(`lib/${name}`))
  const raised = all(sources.join('\n'), /(?:typeError|rangeError)\(\s*'([A-Z0-9_]+)'/g)
  const known = [...errorCodes(), ...CODES]
  for (const name of raised) assert.ok(known.includes(`ERR_SLUICEGATE_${name}`), name)
})

test('the README names every option, and no other', async () => {
  const allowed = new Set()
  for (const make of [createRateLimiter, expressRateLimit, (options) => rateLimitPlugin({}, options)]) {
    await assert.rejects(
      async () => make({ nonsense: 1 }),
      ({ message }) => {
        for (const name of message.split('allowed are ')[1].split(', ')) allowed.add(name)
        return true
      }
    )
  }
  const section = read('README.md').split('\n## Options\n')[1].split('\n## Routes\n')[0]
  const rows = all(section, /^\| `(\w+)` \|/gm)
  const [, said] = /([^]*)/.exec(section.slice(section.indexOf('`failOpen`')))
  const named = all(said, /`(\w+)`/g).filter((name) => !name.startsWith('ERR_'))
  assert.deepEqual([...rows, ...named].sort(), [...allowed].sort())
})

test('ARCHITECTURE.md has the layers of src/lib.rs', () => {
  const layers = (text) =>
    [...text.matchAll(/^(?:\/\/! )?\| (\d) \| ([^|]+) \|/gm)].map(([, layer, modules]) => [
      layer,
      all(modules, /`(\w+)`/g)
    ])
  const inCode = layers(read('src/lib.rs'))
  assert.ok(inCode.length >= 5)
  assert.deepEqual(layers(read('ARCHITECTURE.md')), inCode)
})

test('links inside the documentation lead somewhere', () => {
  const anchor = (heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-')
  for (const page of PAGES) {
    for (const [, link] of read(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link)) continue
      const [file, fragment] = link.split('#')
      const target = file === '' ? page : path.posix.join(path.posix.dirname(page), file)
      assert.ok(fs.existsSync(path.join(ROOT, target)), `${page}: ${link}`)
      if (fragment === undefined) continue
      const headings = [...read(target).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchor(heading))
      assert.ok(headings.includes(fragment), `${page}: ${link}`)
    }
  }
})

/** The cases that docs/cases.md has to answer. */
const CASES = Object.entries({
  A: [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 17, 19, 21, 22, 23, 24],
  K: [1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 21, 22, 24, 25],
  F: [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 17, 19],
  S: [10, 11],
  N: [1, 4, 5, 6, 12]
}).flatMap(([group, numbers]) => numbers.map((number) => group + String(number).padStart(2, '0')))

function caseRows() {
  return [...read('docs/cases.md').matchAll(/^\| (\w\d\d) \| (.+) \| (.+) \|$/gm)].map(
    ([row, id, , held]) => ({
      row,
      id,
      held
    })
  )
}

/** The names of the tests in a file, as docs/cases.md writes them: `{name}` for what a loop fills in. */
function testNames(file) {
  const text = read(file)
  if (file.endsWith('.json')) return JSON.parse(text).sequences.map(({ name }) => name)
  if (file.endsWith('.rs')) return all(text, /^ *#\[test\]\n(?: *#\[[^\n]*\]\n)* *fn (\w+)\(/gm)
  return [...text.matchAll(/^ *test\(\s*(['"`])((?:\\.|(?!\1).)*)\1/gm)].map(([, , name]) =>
    name.replace(/\$(\{\w+\})/g, '$1').replace(/\\(.)/g, '$1')
  )
}

test('docs/cases.md has a row for each case that this release has to hold, and no other', () => {
  assert.deepEqual(
    caseRows().map(({ id }) => id),
    CASES
  )
})

test('each case names tests that are there, in the files that it says', () => {
  let cited = 0
  for (const { id, held } of caseRows()) {
    const before = cited
    let rest = held
    for (const [part, names, files] of held.matchAll(/((?:`[^`]+`(?:, )?)+) in ((?:`[^`]+`(?:, )?)+)/g)) {
      rest = rest.replace(part, '')
      for (const file of all(files, /`([^`]+)`/g)) {
        const there = testNames(file)
        for (const name of all(names, /`([^`]+)`/g)) {
          assert.ok(there.includes(name), `${id}: ${file} has no test "${name}"`)
          cited++
        }
      }
    }
    assert.ok(cited > before, `${id} names no test`)
    assert.doesNotMatch(rest, /`/, `${id}: a name without a file`)
  }
  assert.ok(cited > 150)
})

test('each line of code that docs/cases.md names says what it is named for', () => {
  const text = read('docs/cases.md')
  const places = [...text.matchAll(/`([\w./-]+):(\d+)`(?: \(`([^`]+)`\))?/g)]
  assert.ok(places.length >= 8)
  for (const [, file, number, what] of places) {
    assert.ok(what, `${file}:${number}: write behind it, in brackets, what stands there`)
    const lines = read(file).split('\n')
    const found = lines.findIndex((line) => line.includes(what)) + 1
    assert.ok(lines[number - 1]?.includes(what), `${file}:${number}: "${what}" is in line ${found}`)
  }
})

test('every script that the documentation names exists', () => {
  const { scripts } = require('../package.json')
  for (const page of PAGES) {
    for (const name of all(read(page), /npm run ([\w:]+)/g)) assert.ok(name in scripts, `${page}: ${name}`)
  }
  assert.ok('start' in scripts && 'test' in scripts)
})

test('the changelog has the version of the package', () => {
  const { version } = require('../package.json')
  assert.match(read('CHANGELOG.md'), new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\]`, 'm'))
  assert.match(read('Cargo.toml'), new RegExp(`^version = "${version.replaceAll('.', '\\.')}"$`, 'm'))
})
