// One native image for the process: copies of the package, worker threads, and what is said when there is none (N09).
'use strict'

const assert = require('node:assert/strict')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { test } = require('node:test')

const { INDEX, run } = require('./support/workers.js')

/** A second copy of the package, as node_modules of two dependants would have it. */
function copy(t, version, withAddon = true) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sluicegate-'))
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }))
  for (const name of ['index.js', 'lib', 'package.json', 'binding.js']) {
    fs.cpSync(path.join(INDEX, name), path.join(directory, name), { recursive: true })
  }
  fs.cpSync(
    path.join(INDEX, 'node_modules', 'fastify-plugin'),
    path.join(directory, 'node_modules', 'fastify-plugin'),
    {
      recursive: true
    }
  )
  if (withAddon) {
    for (const name of fs.readdirSync(INDEX).filter((name) => name.endsWith('.node'))) {
      fs.cpSync(path.join(INDEX, name), path.join(directory, name))
    }
  }
  const file = path.join(directory, 'package.json')
  const manifest = JSON.parse(fs.readFileSync(file, 'utf8'))
  fs.writeFileSync(file, JSON.stringify({ ...manifest, version: version ?? manifest.version }))
  return directory
}

const SHARED = "{ name: 'addon.test', limit: 1, window: '1m' }"

test('two copies of one version share named limiters, in threads too', async (t) => {
  const other = copy(t)
  const ended = await run(`
    const { Worker } = require('node:worker_threads')
    const other = require(${JSON.stringify(other)})
    const first = sluicegate.createRateLimiter(${SHARED}).checkSync('a').allowed
    const second = other.createRateLimiter(${SHARED}).checkSync('a').allowed
    const worker = new Worker(
      "require('node:worker_threads').parentPort.postMessage(require(" + ${JSON.stringify(JSON.stringify(other))} +
        ").createRateLimiter(${SHARED}).checkSync('a').allowed)",
      { eval: true }
    )
    worker.on('message', (third) => console.log(JSON.stringify([first, second, third, sluicegate.ManualClock === other.ManualClock])))
  `)
  assert.equal(ended.stderr, '')
  assert.deepEqual(JSON.parse(ended.stdout), [true, false, false, true])
})

test('two versions do not share, and say why once', async (t) => {
  const other = copy(t, '99.0.0')
  const ended = await run(`
    process.on('warning', (warning) => console.log(warning.code + ' ' + warning.message))
    const other = require(${JSON.stringify(other)})
    const allowed = [sluicegate, other].map((copy) => copy.createRateLimiter({ limit: 1, window: '1m' }).checkSync('a').allowed)
    console.log(JSON.stringify(allowed))
  `)
  const lines = ended.stdout.trim().split('\n')
  assert.equal(lines.filter((line) => line.startsWith('SLUICEGATE_TWO_VERSIONS')).length, 1, ended.stdout)
  assert.match(ended.stdout, /99\.0\.0/)
  assert.ok(lines.includes('[true,true]'))
})

test('N09 a missing addon says platform, file, package and what to do', async (t) => {
  const bare = copy(t, '98.0.0', false)
  const ended = await run(`
    delete globalThis[Symbol.for('sluicegate.addon')]
    require('node:worker_threads').setEnvironmentData('sluicegate.addon', undefined)
    try { require(${JSON.stringify(bare)}) } catch (error) { console.log(error.code + ' ' + error.message) }
  `)
  assert.match(ended.stdout, /^ERR_SLUICEGATE_ADDON_MISSING /, ended.stderr)
  const target = [process.platform, process.arch].join('-')
  assert.ok(ended.stdout.includes(`sluicegate.${target}`), ended.stdout)
  assert.ok(ended.stdout.includes(`package sluicegate-${target}`), ended.stdout)
  assert.match(ended.stdout, /npm run build/)
})

test('named imports work in ES modules', async () => {
  const url = JSON.stringify(`file://${path.join(INDEX, 'index.js')}`)
  const ended = await run(
    `import { createRateLimiter, expressRateLimit, rateLimitPlugin, ManualClock, DeniedError } from ${url}
     import sluicegate from ${url}
     const limiter = createRateLimiter({ limit: 1, window: 1000, clock: new ManualClock(0) })
     limiter.checkSync('a')
     console.log(typeof expressRateLimit, typeof rateLimitPlugin, typeof DeniedError, limiter.checkSync('a').allowed,
       sluicegate.createRateLimiter === createRateLimiter)`,
    { args: ['--input-type=module'], prelude: false }
  )
  assert.equal(ended.stdout.trim(), 'function function function false true', ended.stderr)
})
