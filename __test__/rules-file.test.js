// A rules file is read again when it changes; one that is not valid changes nothing (S10, S11 as seen from JavaScript).
'use strict'

const assert = require('node:assert/strict')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { test } = require('node:test')

const { ManualClock, createRateLimiter } = require('..')
const { FASTIFY, FRAMEWORKS, memoryLogger, serve } = require('./support/server.js')

function rulesFile(t, text) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sluicegate-'))
  t.after(() => fs.rmSync(directory, { recursive: true, force: true }))
  const file = path.join(directory, 'rules.yaml')
  fs.writeFileSync(file, text)
  return {
    file,
    /** As editors and deployments do it: a new file in the place of the old one. */
    replace(text) {
      fs.writeFileSync(`${file}.new`, text)
      fs.renameSync(`${file}.new`, file)
    }
  }
}

function yaml(limit, more = '') {
  return `tenants:\n  default:\n    default: { limit: ${limit}, window: 1m, algorithm: fixed_window }\n${more}`
}

/** Reloads come from a thread that watches: there is no call to wait for. */
async function until(condition, what) {
  const end = performance.now() + 10_000
  while (performance.now() < end) {
    if (condition()) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  assert.fail(what)
}

for (const framework of FRAMEWORKS) {
  test(`${framework}: a rules file that changes takes effect at once, counts kept, and an invalid one does not`, async (t) => {
    const rules = rulesFile(t, yaml(2))
    const logger = memoryLogger()
    const app = await serve(t, framework, { rules: rules.file, clock: new ManualClock(0), logger })
    assert.deepEqual(await app.statuses(3), [200, 200, 429])
    rules.replace(yaml(3))
    await until(() => logger.of('info').some((line) => /reloaded/.test(line)), 'no reload')
    assert.deepEqual(await app.statuses(2), [200, 429])
    rules.replace(yaml(-1))
    await until(() => logger.of('error').some((line) => /kept as they were/.test(line)), 'no complaint')
    assert.match(logger.of('error')[0], /line 3.*limit/)
    assert.equal((await app.get()).status, 429)
  })

  test(`${framework}: a file that gains a route and a list of addresses needs no restart`, async (t) => {
    const rules = rulesFile(t, yaml(100))
    const logger = memoryLogger()
    const app = await serve(
      t,
      framework,
      { rules: rules.file, clock: new ManualClock(0), logger },
      {
        app: FASTIFY.includes(framework) ? { trustProxy: '127.0.0.1' } : { 'trust proxy': 1 },
        routes: (app) => app.get('/login', (req, res) => void res.send('in'))
      }
    )
    assert.deepEqual(await app.statuses(2, '/login'), [200, 200])
    rules.replace(
      yaml(
        100,
        '    routes:\n      - { match: { path: /login }, limit: 1, window: 1m }\n    deny: [203.0.113.0/24]\n'
      )
    )
    await until(() => logger.of('info').some((line) => /reloaded/.test(line)), 'no reload')
    assert.deepEqual(await app.statuses(2, '/login'), [200, 429])
    assert.equal((await app.get('/', { 'x-forwarded-for': '203.0.113.7' })).status, 403)
  })
}

test('rules that cannot be read or are not valid throw at once', (t) => {
  const rules = rulesFile(t, yaml('many'))
  assert.throws(() => createRateLimiter({ rules: rules.file }), { code: 'ERR_SLUICEGATE_INVALID_LIMIT' })
  assert.throws(() => createRateLimiter({ rules: `${rules.file}.none` }), {
    name: 'RangeError',
    code: 'ERR_SLUICEGATE_RULES_UNREADABLE',
    field: 'rules'
  })
})

test('a name in a file cannot put line breaks or escape sequences into a log', (t) => {
  const rules = rulesFile(t, 'tenants: { "a\\e[31m\\nb": { default: { limit: x, window: 1m } } }\n')
  assert.throws(
    () => createRateLimiter({ rules: rules.file }),
    (error) => {
      assert.match(error.message, /^line 1: tenants\.a\\u\{1b\}\[31m\\nb\.default\.limit must be/)
      return true
    }
  )
})

test('a tenant that a new content leaves out is not limited and that is said once', async (t) => {
  const logger = memoryLogger()
  const rules = rulesFile(t, yaml(1))
  const limiter = createRateLimiter({ rules: rules.file, logger })
  assert.equal((await limiter.check('a')).limit, 1)
  assert.deepEqual(logger.of('warn'), [])
  rules.replace('tenants: { other: { default: { limit: 1, window: 1m } } }')
  await until(() => logger.of('info').some((line) => /reloaded/.test(line)), 'no reload')
  for (let n = 0; n < 3; n++) assert.equal((await limiter.check('a')).limit, 0)
  assert.equal(logger.of('warn').length, 1)
})

test('a tenant without rules is not limited and that is said once', async () => {
  const logger = memoryLogger()
  const limiter = createRateLimiter({ tenantId: 'other', rules: { tenants: { a: {} } }, logger })
  for (let n = 0; n < 3; n++) assert.equal((await limiter.check('a')).allowed, true)
  await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(logger.of('warn').length, 1)
})
