// Cases of docs/cases.md that belong to no other file: algorithms over time, what clients are told to wait, keys that look
// like other keys, log lines, panics, and the order of Express middleware.
'use strict'

const assert = require('node:assert/strict')
const fs = require('node:fs')
const path = require('node:path')
const { test } = require('node:test')

const { ManualClock, createRateLimiter, expressRateLimit } = require('..')
const { NativeLimiter, output } = require('../lib/addon.js')
const { EXPRESS, FRAMEWORKS, memoryLogger, request, serve, times } = require('./support/server.js')

const CLOCK = 1_728_000_000_000
const ALGORITHMS = [
  'fixed_window',
  'sliding_window_counter',
  'sliding_window_log',
  'token_bucket',
  'leaky_bucket'
]

/** Numbers from 0 to 1 that look random and are the same in every run. */
function* phases() {
  for (let seed = 1; ; seed = (seed * 16_807) % 2_147_483_647) yield seed / 2_147_483_647
}

for (const algorithm of ALGORITHMS) {
  const delay = algorithm === 'leaky_bucket' ? { maxDelay: '1d' } : {}

  test(`A03 ${algorithm}: cost 0 and peek count nothing, make no key, and say whether one unit would pass`, async () => {
    const clock = new ManualClock(CLOCK)
    const limiter = createRateLimiter({ algorithm, limit: 3, window: '1m', clock, ...delay })
    for (const ask of [limiter.check('a', { cost: 0 }), limiter.peek('a'), limiter.peek('a', { cost: 0 })]) {
      const { allowed, remaining, resetAt } = await ask
      assert.deepEqual([allowed, remaining, resetAt], [true, 3, CLOCK])
    }
    assert.equal(limiter.stats().keys, 0)
    await limiter.check('a')
    for (let n = 0; n < 10; n++) assert.equal((await limiter.check('a', { cost: 0 })).remaining, 2)
    assert.equal((await limiter.check('a', { cost: 2 })).remaining, 0)
    for (let n = 0; n < 10; n++) assert.equal((await limiter.check('a', { cost: 0 })).outcome, 'denied')
    assert.equal((await limiter.peek('a')).outcome, 'denied')
    assert.equal(limiter.stats().keys, 1)
  })

  test(`A02 A08 ${algorithm}: a client that polls gets what one that waits gets`, async () => {
    const clock = new ManualClock(CLOCK)
    const limiter = createRateLimiter({ algorithm, limit: 1, window: '10s', clock, ...delay })
    assert.equal(limiter.checkSync('a').allowed, true)
    const passed = []
    for (let ms = 50; ms <= 60_000; ms += 50) {
      clock.advance(50)
      if (limiter.checkSync('a').allowed) passed.push(ms)
    }
    // The counter's estimate lets a limit of 1 pass in every other window.
    const gap = algorithm === 'sliding_window_counter' ? 20_000 : 10_000
    assert.deepEqual(
      passed,
      [1, 2, 3, 4, 5, 6].map((n) => n * gap).filter((ms) => ms <= 60_000)
    )
  })

  test(`A19 ${algorithm}: whoever waits as long as he is told passes, at 200 phases`, async () => {
    const clock = new ManualClock(CLOCK)
    const random = phases()
    const policies = [400, 1000, 1700, 60_000].map((window) => ({ limit: 1, window, cost: 1 }))
    if (algorithm === 'token_bucket') policies.push({ limit: 1, window: 2000, burst: 3, cost: 3 })
    for (const { cost, ...policy } of policies) {
      const limiter = createRateLimiter({ algorithm, clock, ...policy })
      for (let n = 0; n < 200; n++) {
        clock.advance(random.next().value * policy.window)
        let decision = limiter.checkSync('a', { cost })
        if (decision.allowed) decision = limiter.checkSync('a', { cost })
        assert.equal(decision.outcome, 'denied')
        assert.ok(decision.retryAfterMs >= 1 && Number.isInteger(decision.retryAfterMs))
        if (n % 2 === 0) clock.advance(decision.retryAfterMs)
        else clock.set(decision.resetAt)
        assert.equal(limiter.checkSync('a', { cost }).allowed, true)
      }
    }
  })
}

test('A08 sixty tokens that come one a minute are there after as many minutes, however often one asks', () => {
  const clock = new ManualClock(CLOCK)
  const limiter = createRateLimiter({ algorithm: 'token_bucket', limit: 1, window: '1m', burst: 60, clock })
  assert.equal(limiter.checkSync('a', { cost: 60 }).allowed, true)
  for (let minute = 1; minute <= 60; minute++) {
    for (let step = 0; step < 600; step++) {
      assert.equal(limiter.checkSync('a', { cost: 60 }).allowed, false)
      clock.advance(100)
    }
    assert.equal(limiter.checkSync('a', { cost: 0 }).remaining, minute)
  }
  assert.equal(limiter.checkSync('a', { cost: 60 }).allowed, true)
})

for (const framework of FRAMEWORKS) {
  test(`A19 ${framework}: Retry-After and Reset are whole, lie ahead, and are enough`, async (t) => {
    const clock = new ManualClock(CLOCK)
    const random = phases()
    const routes = ALGORITHMS.flatMap((algorithm) =>
      [400, 1000, 1700, 60_000].map((window) => ({
        match: { path: `/${algorithm}/${window}` },
        algorithm,
        limit: 1,
        window
      }))
    )
    const costly = { algorithm: 'token_bucket', limit: 1, window: 2000, burst: 3, cost: 3 }
    routes.push({ match: { path: '/token_bucket/costly' }, ...costly })
    const app = await serve(t, framework, { rules: { tenants: { default: { routes } } }, clock })
    for (const { match, window } of routes) {
      const denied = async () => {
        clock.advance(random.next().value * window)
        let response = await app.get(match.path)
        if (response.status === 200) {
          assert.equal(response.headers['retry-after'], undefined)
          response = await app.get(match.path)
        }
        assert.equal(response.status, 429, match.path)
        assert.match(response.headers['retry-after'], /^[1-9]\d{0,2}$/)
        assert.match(response.headers['x-ratelimit-reset'], /^\d{10}$/)
        const [wait, reset] = ['retry-after', 'x-ratelimit-reset'].map((name) =>
          Number(response.headers[name])
        )
        const now = clock.now() / 1000
        assert.ok(
          reset >= now && Math.abs(reset - now - wait) <= 1,
          `${match.path}: ${reset}, ${now}, ${wait}`
        )
        return { wait, reset }
      }
      clock.advance((await denied()).wait * 1000)
      assert.equal((await app.get(match.path)).status, 200, match.path)
      clock.set((await denied()).reset * 1000)
      assert.equal((await app.get(match.path)).status, 200, match.path)
    }
  })

  test(`A17 ${framework}: a full queue says so, and has room for one after one has left`, async (t) => {
    const clock = new ManualClock(CLOCK)
    const policy = { algorithm: 'leaky_bucket', limit: 1, window: '1s', burst: 5 }
    const cost = (req) => Number(req.headers['x-cost'] ?? 1)
    const app = await serve(t, framework, { ...policy, clock, cost })
    const first = await app.get('/', { 'x-cost': '5' })
    assert.equal(first.status, 200)
    assert.equal(first.headers['x-ratelimit-remaining'], '0')
    for (let n = 0; n < 100; n++) {
      const { status, headers } = await app.get()
      assert.equal(status, 429)
      assert.deepEqual(
        [headers['x-ratelimit-limit'], headers['x-ratelimit-remaining'], headers['retry-after']],
        ['5', '0', '1']
      )
      assert.equal(headers['x-ratelimit-reset'], String(CLOCK / 1000 + 5))
    }
    clock.advance(1100)
    const key = await app.keyOf({ ip: '127.0.0.1' })
    const next = app.limiter.checkSync(key)
    assert.deepEqual([next.allowed, next.remaining, next.delayMs], [true, 0, 3900])
    assert.equal((await app.get()).status, 429)
    clock.advance(60_000)
    assert.equal((await app.limiter.peek(key)).remaining, 5)
  })

  test(`K20 ${framework}: no client can write a line of the log`, async (t) => {
    const logger = memoryLogger()
    const hostile = 'x\r\nERROR admin logged in\u001b[2J\u2028y'
    const app = await serve(t, framework, {
      limit: 0,
      window: '1m',
      logger,
      clock: new ManualClock(CLOCK),
      keyExtractor: (req) => decodeURIComponent(req.url),
      onDenied: (req) => {
        throw new Error(`no page for ${decodeURIComponent(req.url)}`)
      }
    })
    assert.equal((await app.get(`/${encodeURIComponent(hostile)}`)).status, 429)
    assert.equal((await app.limiter.check(hostile)).allowed, false)
    assert.equal(logger.lines.length, 1)
    const [{ message }] = logger.lines
    assert.doesNotMatch(message, /[\p{Cc}\u2028\u2029]/u)
    assert.match(message, /no page for \/x\\u\{d\}\\u\{a\}ERROR admin logged in\\u\{1b\}\[2J\\u\{2028\}y/)
    assert.match(message, /cases\.test\.js:\d+/, 'where it was thrown')
  })
}

test('K12 keys, names and tenants that look alike joined are apart', async () => {
  const options = { limit: 1, window: '1m', clock: new ManualClock(CLOCK) }
  for (const [tenantId, name] of [
    ['a:b', 'c'],
    ['a', 'b:c'],
    ['a:b:c', 'x'],
    ['a', 'b']
  ]) {
    const limiter = createRateLimiter({ ...options, tenantId, name })
    assert.equal((await limiter.check('d')).allowed, true, `${tenantId} ${name}`)
    assert.equal((await limiter.check('d')).allowed, false, `${tenantId} ${name}`)
    assert.equal((await limiter.check('c:d')).allowed, true, `${tenantId} ${name}`)
  }
  const lists = createRateLimiter({ ...options, deny: ['mallory'], allow: ['root'] })
  for (const key of ['deny', 'allow', 'default', '__proto__']) {
    assert.equal((await lists.check(key)).outcome, 'allowed', key)
    assert.equal((await lists.check(key)).outcome, 'denied', key)
  }
  assert.equal((await lists.check('mallory')).outcome, 'denylisted')
})

test('K12 what a client sends cannot be the key of another', async () => {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const bearer = (sub) => `Bearer ${part({ alg: 'HS256' })}.${part({ sub })}.x`
  const keys = []
  const keyOf = async (options, req) => {
    const limiter = createRateLimiter({ limit: 1, window: '1m', logger: memoryLogger(), ...options })
    keys.push(await limiter.keyOf(req))
  }
  const ip = '203.0.113.7'
  await keyOf({}, { ip })
  await keyOf({}, { ip: '2001:db8::1' })
  for (const key of ['k', `k|${ip}`, ip, `ip:${ip}`]) {
    const headers = { 'x-api-key': key }
    await keyOf({ keyExtractor: 'api-key-header' }, { ip: '192.0.2.1', headers })
    for (const address of [ip, '2001:db8::1'])
      await keyOf({ keyExtractor: 'composite' }, { ip: address, headers })
  }
  for (const sub of [ip, `ip:${ip}`, 'k'])
    await keyOf({ keyExtractor: 'jwt-sub' }, { ip: '192.0.2.1', headers: { authorization: bearer(sub) } })
  for (const text of [`ip:${ip}`, ip, keys[2], 'k']) await keyOf({ keyExtractor: () => text }, { ip })
  assert.deepEqual([...new Set(keys)], keys)
})

for (const framework of EXPRESS) {
  test(`F19 ${framework}: a limiter that is mounted after a route never sees it, and the README says so`, async (t) => {
    const app = require(framework)()
    const limiter = expressRateLimit({ limit: 1, window: '1m', clock: new ManualClock(CLOCK) })
    app.get('/before', (req, res) => void res.send('ok'))
    app.use(limiter)
    app.get('/after', (req, res) => void res.send('ok'))
    const server = app.listen({ port: 0, host: '127.0.0.1' })
    await new Promise((resolve) => server.once('listening', resolve))
    t.after(() => server.close())
    const ask = async (path) =>
      (await request({ host: '127.0.0.1', port: server.address().port, path })).status
    const statuses = []
    for (const path of ['/before', '/before', '/before', '/after', '/after', '/before'])
      statuses.push(await ask(path))
    assert.deepEqual(statuses, [200, 200, 200, 200, 429, 200])
    const readme = fs.readFileSync(path.join(__dirname, '..', 'README.md'), 'utf8')
    assert.match(readme, /Order matters: a limiter that is mounted after a route/)
  })
}

test('N05 a panic becomes an error, and every later check is answered', async (t) => {
  const native = new NativeLimiter({ limit: 3, window: '1m', name: 'cases.test' }, output, () => {})
  t.after(() => native.close())
  const { checkKey, panicForTest } = native.hot()
  if (panicForTest === undefined) return t.skip('only a debug build can be made to panic')
  checkKey(0, 'a')
  for (let n = 0; n < 3; n++) {
    assert.throws(() => panicForTest(), {
      code: 'ERR_SLUICEGATE_INTERNAL',
      message: /a fault inside sluicegate/
    })
  }
  const limiter = createRateLimiter({ limit: 3, window: '1m', name: 'cases.test' })
  const allowed = []
  for (let n = 0; n < 3; n++) allowed.push((await limiter.check('a')).allowed)
  assert.deepEqual(allowed, [...times(2, true), false])
  assert.equal(checkKey(0, 'b'), undefined)
})
