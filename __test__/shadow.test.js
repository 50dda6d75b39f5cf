// Shadow mode: everything is decided and reported, nothing is blocked or delayed.
'use strict'

const assert = require('node:assert/strict')
const { test } = require('node:test')

const { ManualClock, createRateLimiter } = require('..')
const { FRAMEWORKS, serve } = require('./support/server.js')

for (const framework of FRAMEWORKS) {
  test(`${framework}: shadow mode answers as if there were no limit, and reports the denial`, async (t) => {
    const options = { limit: 1, window: '1m', mode: 'shadow', clock: new ManualClock(0) }
    const app = await serve(t, framework, options)
    await app.get()
    const passed = await app.get()
    assert.equal(passed.status, 200)
    assert.equal(passed.body.rateLimit.allowed, true)
    assert.equal(passed.body.rateLimit.outcome, 'denied')
    assert.equal(passed.headers['x-ratelimit-remaining'], '0')
    assert.equal(passed.headers['retry-after'], undefined)
    assert.equal(passed.headers['cache-control'], undefined)
    assert.equal(app.limiter.stats().denied, 1)
    const enforced = await serve(t, framework, { ...options, mode: 'enforce' })
    assert.deepEqual(await enforced.statuses(2), [200, 429])
  })

  test(`${framework}: shadow mode blocks nobody of a list and delays nobody`, async (t) => {
    const options = {
      limit: 1,
      window: '1h',
      burst: 5,
      maxDelay: '1d',
      algorithm: 'leaky_bucket',
      mode: 'shadow'
    }
    const app = await serve(t, framework, { ...options, deny: ['192.0.2.1'] })
    const second = (await app.statuses(1), await app.get())
    assert.equal(second.status, 200)
    assert.equal(second.body.rateLimit.delayMs, 0)
    assert.ok(second.body.rateLimit.policies[0].delayMs > 3_000_000)
    const listed = await serve(t, framework, { ...options, deny: ['127.0.0.1'] })
    const denied = await listed.get()
    assert.equal(denied.status, 200)
    assert.equal(denied.body.rateLimit.outcome, 'denylisted')
  })
}

test('createRateLimiter in shadow mode allows, and outcome tells', async () => {
  const limiter = createRateLimiter({ limit: 1, window: '1m', mode: 'shadow', clock: new ManualClock(0) })
  assert.equal((await limiter.check('a')).outcome, 'allowed')
  const decision = await limiter.check('a')
  assert.equal(decision.allowed, true)
  assert.equal(decision.outcome, 'denied')
  assert.equal(decision.policies[0].allowed, false)
  assert.ok(decision.retryAfterMs > 0)
})
