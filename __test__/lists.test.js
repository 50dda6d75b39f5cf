// allow and deny: addresses, CIDR blocks and keys.
'use strict'

const assert = require('node:assert/strict')
const { test } = require('node:test')

const { ManualClock, createRateLimiter } = require('..')
const { FASTIFY, FRAMEWORKS, serve } = require('./support/server.js')

for (const framework of FRAMEWORKS) {
  const app = FASTIFY.includes(framework) ? { trustProxy: '127.0.0.1' } : { 'trust proxy': 1 }
  const limited = (more) => ({ limit: 1, window: '1m', clock: new ManualClock(0), ...more })
  const from = (address) => ({ 'x-forwarded-for': address })

  test(`${framework}: who is allowed is not limited, who is denied gets a 403, in any spelling of the address`, async (t) => {
    const lists = { allow: ['10.0.0.0/8', '2001:db8::/32'], deny: ['203.0.113.0/24', '10.9.9.9'] }
    const server = await serve(t, framework, limited(lists), { app })
    for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '2001:db8::1']) {
      assert.deepEqual(await server.statuses(3, '/', from(address)), [200, 200, 200], address)
    }
    for (const address of ['203.0.113.7', '::ffff:203.0.113.7', '::FFFF:cb00:7107', '10.9.9.9']) {
      assert.equal((await server.get('/', from(address))).status, 403, address)
    }
    assert.deepEqual(await server.statuses(2, '/', from('192.0.2.1')), [200, 429])
  })

  test(`${framework}: listed requests carry no numbers, and a 403 is a problem document`, async (t) => {
    const server = await serve(t, framework, limited({ allow: ['10.0.0.1'], deny: ['10.0.0.2'] }), { app })
    const allowed = await server.get('/', from('10.0.0.1'))
    assert.equal(allowed.headers['x-ratelimit-limit'], undefined)
    assert.deepEqual(
      { ...allowed.body.rateLimit },
      {
        allowed: true,
        outcome: 'allowlisted',
        limit: 0,
        remaining: 0,
        resetAt: 0,
        nextAt: 0,
        retryAfterMs: 0,
        delayMs: 0,
        policy: '',
        policies: []
      }
    )
    const denied = await server.get('/', from('10.0.0.2'))
    assert.equal(denied.status, 403)
    assert.equal(denied.headers['content-type'], 'application/problem+json')
    assert.equal(denied.headers['cache-control'], 'no-store')
    assert.equal(denied.headers['retry-after'], undefined)
    assert.equal(denied.headers['x-ratelimit-limit'], undefined)
    assert.equal(denied.body.status, 403)
    assert.equal(server.handled.count, 1)
    assert.deepEqual(await server.statuses(2, '/', from('192.0.2.1')), [200, 429])
  })

  test(`${framework}: lists know keys too`, async (t) => {
    const options = limited({
      keyExtractor: (req) => req.headers['x-user'],
      allow: ['root'],
      deny: ['mallory']
    })
    const server = await serve(t, framework, options)
    assert.deepEqual(await server.statuses(3, '/', { 'x-user': 'root' }), [200, 200, 200])
    assert.deepEqual(await server.statuses(1, '/', { 'x-user': 'mallory' }), [403])
    assert.deepEqual(await server.statuses(2, '/', { 'x-user': 'alice' }), [200, 429])
  })
}

test('what looks like an address or a block and is none is refused at once', () => {
  for (const entry of ['010.0.0.1', '10.0.0.0/33', '10.0.0.256', '2001:db8::/129', '::1/']) {
    for (const list of ['allow', 'deny']) {
      assert.throws(
        () => createRateLimiter({ limit: 1, window: 1000, [list]: [entry] }),
        { code: `ERR_SLUICEGATE_INVALID_${list.toUpperCase()}` },
        entry
      )
    }
  }
})

test('block and unblock: a blocked key is told how long, and has its quota afterwards', async () => {
  const clock = new ManualClock(0)
  const limiter = createRateLimiter({ limit: 1, window: '1m', clock })
  await limiter.block('a', 5_000, 'spam')
  const blocked = await limiter.check('a')
  assert.equal(blocked.outcome, 'denylisted')
  assert.equal(blocked.allowed, false)
  assert.equal(blocked.retryAfterMs, 5_000)
  assert.equal((await limiter.check('b')).allowed, true)
  assert.equal(limiter.stats().blocked, 1)
  clock.advance(5_000)
  assert.equal((await limiter.check('a')).outcome, 'allowed')
  assert.equal((await limiter.check('a')).outcome, 'denied')
  await limiter.block('c', 5_000)
  assert.equal(await limiter.unblock('c'), true)
  assert.equal(await limiter.unblock('c'), false)
  assert.equal((await limiter.check('c')).allowed, true)
  for (const ms of [0, -1, 1.5, NaN, Infinity, '5', undefined, null]) {
    await assert.rejects(limiter.block('d', ms), { code: 'ERR_SLUICEGATE_INVALID_DURATION' }, String(ms))
  }
})
