// The package as npm packs it, in projects of its users: CommonJS, ESM and TypeScript, with the frameworks and without.
// Nothing is fetched: what a project depends on is linked from this repository's node_modules.
'use strict'

const assert = require('node:assert/strict')
const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { after, before, test } = require('node:test')

const ROOT = path.join(__dirname, '..')
const NAMES = [
  'DeniedError',
  'ManualClock',
  'RateLimiter',
  'createRateLimiter',
  'expressRateLimit',
  'rateLimitPlugin'
]

let scratch
let tarball

before(() => {
  scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'sluicegate-package-'))
  const npm = process.env.npm_execpath?.endsWith('.js')
    ? [process.execPath, [process.env.npm_execpath]]
    : ['npm', []]
  const packed = execFileSync(
    npm[0],
    [...npm[1], 'pack', '--ignore-scripts', '--json', '--pack-destination', scratch],
    { cwd: ROOT, encoding: 'utf8', shell: process.platform === 'win32' && npm[0] === 'npm' }
  )
  tarball = path.join(scratch, JSON.parse(packed)[0].filename)
})

after(() => fs.rmSync(scratch, { recursive: true, force: true }))

/** A project with the packed package in it, its addon in a platform's package beside it, and `dependencies` linked. */
function project(name, type, dependencies) {
  const directory = path.join(scratch, name)
  const modules = path.join(directory, 'node_modules')
  const installed = path.join(modules, 'sluicegate')
  fs.mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xzf', tarball, '--strip-components=1'], { cwd: installed })
  installPlatform(modules)
  for (const dependency of ['fastify-plugin', ...dependencies]) {
    const link = path.join(modules, dependency)
    fs.mkdirSync(path.dirname(link), { recursive: true })
    fs.symlinkSync(path.join(ROOT, 'node_modules', dependency), link, 'junction')
  }
  fs.writeFileSync(path.join(directory, 'package.json'), JSON.stringify({ name, type, private: true }))
  return directory
}

/** The package of this platform, from `npm/`, with the addon that was built here in it. */
function installPlatform(modules) {
  const addons = fs.readdirSync(ROOT).filter((name) => /^sluicegate\..*\.node$/.test(name))
  for (const addon of addons) {
    const target = addon.split('.')[1]
    const directory = path.join(modules, `sluicegate-${target}`)
    fs.mkdirSync(directory)
    fs.copyFileSync(path.join(ROOT, 'npm', target, 'package.json'), path.join(directory, 'package.json'))
    fs.copyFileSync(path.join(ROOT, addon), path.join(directory, addon))
  }
}

function write(directory, file, lines) {
  fs.writeFileSync(path.join(directory, file), lines.join('\n'))
  return path.join(directory, file)
}

/** What a program prints, as JSON. */
function run(directory, file, lines) {
  const program = write(directory, file, lines)
  return JSON.parse(execFileSync(process.execPath, [program], { cwd: directory, encoding: 'utf8' }))
}

const PROGRAM = [
  'async function main() {',
  "  const limiter = createRateLimiter({ limit: 1, window: '1m' })",
  "  const outcomes = [(await limiter.check('a')).outcome, (await limiter.check('a')).outcome]",
  '  const app = Fastify()',
  "  await app.register(rateLimitPlugin, { limit: 1, window: '1m' })",
  "  app.get('/', async () => 'ok')",
  "  const statuses = [(await app.inject('/')).statusCode, (await app.inject('/')).statusCode]",
  '  console.log(JSON.stringify({ names, outcomes, statuses, loaded }))',
  '}',
  'main()'
]

function assertWorks(result, directory) {
  assert.deepEqual(result.names, NAMES)
  assert.deepEqual(result.outcomes, ['allowed', 'denied'])
  assert.deepEqual(result.statuses, [200, 429])
  assert.ok(result.loaded.startsWith(fs.realpathSync(directory)), `${result.loaded} is not the packed copy`)
}

test('works in a CommonJS project', () => {
  const directory = project('cjs', 'commonjs', ['fastify'])
  const result = run(directory, 'index.js', [
    "const Fastify = require('fastify')",
    "const sluicegate = require('sluicegate')",
    'const { createRateLimiter, rateLimitPlugin } = sluicegate',
    'const names = Object.keys(sluicegate).sort()',
    "const loaded = require.resolve('sluicegate')",
    ...PROGRAM
  ])
  assertWorks(result, directory)
})

test('works in an ES module project', () => {
  const directory = project('esm', 'module', ['fastify'])
  const result = run(directory, 'index.js', [
    "import { createRequire } from 'node:module'",
    "import Fastify from 'fastify'",
    "import * as sluicegate from 'sluicegate'",
    "import { createRateLimiter, rateLimitPlugin } from 'sluicegate'",
    "const names = Object.keys(sluicegate).filter((name) => name !== 'default' && name !== 'module.exports').sort()",
    "const loaded = createRequire(import.meta.url).resolve('sluicegate')",
    ...PROGRAM
  ])
  assertWorks(result, directory)
})

/** What the TypeScript compiler says about a program, as an ES module and as CommonJS. */
function compile(directory, lines) {
  const files = ['index.mts', 'index.cts']
  for (const file of files) write(directory, file, lines)
  const compilerOptions = {
    target: 'es2022',
    module: 'node16',
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    types: ['node']
  }
  write(directory, 'tsconfig.json', [JSON.stringify({ compilerOptions, files })])
  const compiler = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc')
  try {
    return execFileSync(process.execPath, [compiler, '-p', directory], { encoding: 'utf8' })
  } catch (error) {
    return error.stdout
  }
}

const FASTIFY = [
  "import Fastify from 'fastify'",
  "import { rateLimitPlugin } from 'sluicegate'",
  'const app = Fastify()',
  "app.register(rateLimitPlugin, { limit: 5, window: '10s', keyExtractor: 'api-key-header' })",
  "app.get('/', { config: { sluicegate: { limit: 1, window: '1m' } } }, async (request) => {",
  '  const remaining: number | undefined = request.rateLimit?.remaining',
  '  return remaining',
  '})'
]

const EXPRESS = [
  "import express from 'express'",
  "import { expressRateLimit } from 'sluicegate'",
  'const app = express()',
  "app.use(expressRateLimit({ limit: 5, window: '10s', skip: (req) => req.method === 'OPTIONS' }))",
  "app.get('/', (req, res) => {",
  '  const remaining: number | undefined = req.rateLimit?.remaining',
  '  res.json({ remaining })',
  '})'
]

const ALONE = [
  "import { createRateLimiter, type Decision } from 'sluicegate'",
  "const limiter = createRateLimiter({ limits: [{ limit: 10, window: '1s' }, { limit: 1000, window: '1h' }] })",
  "const decision: Promise<Decision> = limiter.check('user:42', { cost: 3 })",
  'void decision.then(({ allowed, retryAfterMs }) => allowed || retryAfterMs)'
]

test('compiles in a TypeScript project with Fastify', () => {
  const directory = project('ts-fastify', 'module', ['fastify', '@types/node'])
  assert.equal(compile(directory, FASTIFY), '')
})

test('compiles in a TypeScript project with Express', () => {
  const directory = project('ts-express', 'module', ['express', '@types/express', '@types/node'])
  assert.equal(compile(directory, EXPRESS), '')
})

test('compiles in a TypeScript project with neither framework', () => {
  const directory = project('ts-alone', 'module', ['@types/node'])
  assert.equal(compile(directory, ALONE), '')
})

test('a mistake in the options does not compile', () => {
  const directory = project('ts-mistake', 'module', ['@types/node'])
  const complaints = compile(directory, [
    "import { createRateLimiter } from 'sluicegate'",
    "createRateLimiter({ limit: 5, window: '10 parsecs' })"
  ])
  assert.match(complaints, /index\.mts\(2,\d+\): error/)
})
