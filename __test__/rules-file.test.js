// A rules file is read again when it changes; one that is not valid changes nothing (A21, A22, S10 and S11 as seen from JavaScript).
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

const ALGORITHMS = [
  'fixed_window',
  'sliding_window_counter',
  'sliding_window_log',
  'token_bucket',
  'leaky_bucket'
]

/** One route for each algorithm, `/fixed_window` and so on, and one more, `/other`. */
function perAlgorithm(policy, other = '{ limit: 7, window: 1m }') {
  const route = (path, members) => `      - { match: { path: /${path} }, ${members} }\n`
  const routes = ALGORITHMS.map((algorithm) => {
    const delay = algorithm === 'leaky_bucket' ? ', maxDelay: 1d' : ''
    return route(algorithm, `algorithm: ${algorithm}${delay}, ${policy}`)
  })
  const last = route('other', other.slice(1, -1))
  return `tenants:\n  default:\n    routes:\n${routes.join('')}${last}`
}

/** A limiter by a file, and `reload`, which replaces the file and waits until it is in force. */
function followed(t, text) {
  const rules = rulesFile(t, text)
  const logger = memoryLogger()
  const limiter = createRateLimiter({ rules: rules.file, clock: new ManualClock(1_728_000_000_000), logger })
  t.after(() => limiter.close())
  const reload = async (text) => {
    const before = logger.of('info').length
    rules.replace(text)
    await until(() => logger.of('info').length > before, 'no reload')
  }
  const check = (path, cost = 1) => limiter.checkSync('c1', { path: `/${path}`, cost })
  return { ...rules, logger, limiter, reload, check }
}

test('A21 a reload fills no bucket: neither a touch nor a change of another rule', async (t) => {
  const text = perAlgorithm('limit: 5, window: 10m')
  const { file, replace, logger, reload, check } = followed(t, text)
  const denied = () => {
    for (const algorithm of ALGORITHMS) assert.equal(check(algorithm).outcome, 'denied', algorithm)
  }
  for (const algorithm of ALGORITHMS) assert.equal(check(algorithm, 5).remaining, 0)
  denied()
  fs.writeFileSync(file, text)
  replace(text)
  denied()
  await reload(perAlgorithm('limit: 5, window: 10m', '{ limit: 9, window: 1m }'))
  assert.equal(check('other').remaining, 8)
  denied()
  assert.deepEqual(logger.of('error'), [])
})

test('A06 A22 a limit that is lowered, raised or 0 takes effect at once, and a new window counts anew', async (t) => {
  const { reload, check } = followed(t, perAlgorithm('limit: 1000, window: 1h'))
  for (const algorithm of ALGORITHMS) assert.equal(check(algorithm).remaining, 999)
  await reload(perAlgorithm('limit: 10, window: 1h'))
  for (const algorithm of ALGORITHMS) {
    const decision = check(algorithm)
    assert.equal(decision.limit, 10)
    // Windows and the queue keep the unit that was used; a bucket of 999 tokens is cut to its new capacity.
    assert.equal(decision.remaining, algorithm === 'token_bucket' ? 9 : 8, algorithm)
    check(algorithm, decision.remaining)
    assert.equal(check(algorithm).outcome, 'denied', algorithm)
  }
  await reload(perAlgorithm('limit: 20, window: 1h'))
  for (const algorithm of ALGORITHMS) {
    if (algorithm === 'token_bucket') assert.equal(check(algorithm).retryAfterMs, 180_000)
    else assert.equal(check(algorithm, 10).remaining, 0, algorithm)
    assert.equal(check(algorithm).outcome, 'denied', algorithm)
  }
  await reload(perAlgorithm('limit: 0, window: 1h'))
  for (const algorithm of ALGORITHMS) {
    const { outcome, limit, remaining, retryAfterMs } = check(algorithm)
    assert.deepEqual([outcome, limit, remaining, retryAfterMs], ['denied', 0, 0, null], algorithm)
  }
  await reload(perAlgorithm('limit: 20, window: 1h'))
  for (const algorithm of ALGORITHMS) {
    // A queue of no room is empty.
    assert.equal(check(algorithm).allowed, algorithm === 'leaky_bucket', algorithm)
  }
  await reload(perAlgorithm('limit: 20, window: 1m'))
  for (const algorithm of ALGORITHMS) assert.equal(check(algorithm).remaining, 19, algorithm)
})

test('S11 no broken content changes anything: the last good rules hold, and the place of the fault is told', async (t) => {
  const good = yaml(2)
  const { file, limiter, logger, replace, reload } = followed(t, good)
  assert.equal(limiter.checkSync('c1', { cost: 2 }).allowed, true)
  const one = (n, more = '') => `      - { match: { path: /${n} }, limit: ${n}, window: 1m${more} }\n`
  const ten = Array.from({ length: 10 }, (_, n) => one(n + 1))
  const broken = {
    'cut off': ['{"tenants": {"default": {"default": {"limit": 5', /line 1/],
    empty: ['', /there is nothing in it/],
    'one bad rule of ten': [
      yaml(100, `    routes:\n${ten.slice(0, 9).join('')}${one(10).replace('1m', 'soon')}`),
      /line 14: tenants\.default\.routes\[9\]\.window/
    ],
    'two rules of one name': [
      yaml(100, `    routes:\n${one(1, ', name: a')}${one(2, ', name: a')}`),
      /line 6: tenants\.default\.routes\[1\]\.name/
    ],
    'an unknown algorithm': [yaml(100).replace('fixed_window', 'sliding_windw'), /line 3: .*algorithm/],
    'a member that stands twice': [yaml(100).replace('limit:', 'limit: 1, limit:'), /line 3: .*twice/],
    'a limit that is text': [yaml("'100'"), /line 3: .*limit/],
    'no UTF-8': [Buffer.from('tenants:\n  \xff: {}', 'latin1'), /line 2/]
  }
  for (const [how, [content, place]] of Object.entries(broken)) {
    const before = logger.of('error').length
    replace(content)
    await until(() => logger.of('error').length > before, `${how}: no complaint`)
    assert.match(logger.of('error').at(-1), /kept as they were/, how)
    assert.match(logger.of('error').at(-1), place, how)
    assert.equal(limiter.checkSync('c1').outcome, 'denied', how)
    assert.equal(limiter.checkSync('c1').limit, 2, how)
    assert.throws(() => createRateLimiter({ rules: file }), { code: /^ERR_SLUICEGATE_/ }, how)
  }
  const errors = logger.of('error').length
  fs.rmSync(file)
  await until(() => logger.of('error').length > errors, 'no complaint about a file that is gone')
  assert.match(logger.of('error').at(-1), /cannot be read/)
  assert.equal(limiter.checkSync('c1').outcome, 'denied')
  await reload(`\ufeff${yaml(3)}`)
  assert.equal(limiter.checkSync('c1').remaining, 0)
  assert.equal(limiter.checkSync('c1').outcome, 'denied')
})

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
