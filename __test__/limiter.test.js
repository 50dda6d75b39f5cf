// The generic limiter: what its methods do, and what it never shows.
'use strict'

const assert = require('node:assert/strict')
const { inspect } = require('node:util')
const { test } = require('node:test')

const { ManualClock, RateLimiter, createRateLimiter } = require('..')

function open(more) {
  return createRateLimiter({
    limit: 3,
    window: '10s',
    algorithm: 'fixed_window',
    clock: new ManualClock(1000),
    ...more
  })
}

test('check, peek, refund and reset', async () => {
  const limiter = open()
  assert.ok(limiter instanceof RateLimiter)
  assert.deepEqual(await limiter.check('a', { cost: 2 }), {
    allowed: true,
    outcome: 'allowed',
    limit: 3,
    remaining: 1,
    resetAt: 11_000,
    nextAt: 11_000,
    retryAfterMs: 0,
    delayMs: 0,
    policy: '3-per-10s',
    policies: [
      {
        policy: '3-per-10s',
        allowed: true,
        limit: 3,
        remaining: 1,
        resetAt: 11_000,
        nextAt: 11_000,
        retryAfterMs: 0,
        delayMs: 0
      }
    ]
  })
  assert.equal((await limiter.peek('a', { cost: 2 })).allowed, false)
  assert.equal((await limiter.peek('a')).remaining, 1)
  assert.equal((await limiter.check('a', { cost: 2 })).allowed, false)
  await limiter.refund('a')
  assert.equal((await limiter.check('a', { cost: 2 })).allowed, true)
  assert.equal((await limiter.check('a')).allowed, false)
  assert.equal((await limiter.check('b')).allowed, true)
  await limiter.reset('a')
  assert.equal((await limiter.peek('a')).remaining, 3)
})

test('checkSync says what check says', async () => {
  const [one, two] = [open(), open()]
  for (let n = 0; n < 5; n++) assert.deepEqual(one.checkSync('a'), await two.check('a'))
  assert.equal(one.checkSync('a').allowed, false)
})

test('a decision is a copy: what comes later does not change it', async () => {
  const limiter = open()
  const [first, second, , fourth] = await Promise.all(['a', 'a', 'a', 'a'].map((key) => limiter.check(key)))
  assert.deepEqual([first.remaining, second.remaining, fourth.allowed], [2, 1, false])
})

test('several policies are decided together, all or nothing, the one that binds on top', async () => {
  const limiter = createRateLimiter({
    limits: [
      { limit: 10, window: '1s', name: 'burst' },
      { limit: 2, window: '1h', name: 'hourly', algorithm: 'fixed_window' }
    ],
    clock: new ManualClock(0)
  })
  await limiter.check('a')
  await limiter.check('a')
  const denied = await limiter.check('a')
  assert.equal(denied.policy, 'hourly')
  assert.equal(denied.retryAfterMs, 3_600_000)
  assert.deepEqual(
    denied.policies.map((state) => [state.policy, state.allowed, state.remaining]),
    [
      ['burst', true, 8],
      ['hourly', false, 0]
    ]
  )
})

test('without a name limiters keep their own counters, with one they share them', async () => {
  const clock = new ManualClock(0)
  const options = { limit: 1, window: '1m', clock }
  assert.equal((await createRateLimiter(options).check('a')).allowed, true)
  assert.equal((await createRateLimiter(options).check('a')).allowed, true)
  const named = { ...options, name: 'limiter.test' }
  const [one, two] = [createRateLimiter(named), createRateLimiter(named)]
  assert.equal((await one.check('a')).allowed, true)
  assert.equal((await two.check('a')).allowed, false)
  assert.equal((await createRateLimiter({ ...named, tenantId: 'other' }).check('a')).allowed, true)
  const conflict = { code: 'ERR_SLUICEGATE_NAME_CONFLICT' }
  assert.throws(() => createRateLimiter({ ...named, clock: new ManualClock(0) }), conflict)
  assert.throws(() => createRateLimiter({ ...named, maxKeys: 5 }), conflict)
})

test('stats count by outcome and say how many keys are held', async () => {
  const limiter = open({ allow: ['friend'], deny: ['foe'] })
  for (let n = 0; n < 4; n++) await limiter.check('a')
  await limiter.check('b')
  await limiter.check('friend')
  await limiter.check('foe')
  const stats = limiter.stats()
  assert.deepEqual(stats, {
    allowed: 4,
    denied: 1,
    allowlisted: 1,
    denylisted: 1,
    degraded: 0,
    keys: 2,
    evicted: 0,
    overflowed: 0,
    blocked: 0,
    misses: {},
    batches: 0
  })
})

for (const algorithm of ['fixed_window', 'sliding_window_log', 'token_bucket', 'leaky_bucket']) {
  test(`${algorithm}: what was taken under a limit that is a function is given back without it`, async () => {
    const limiter = open({
      algorithm,
      limit: () => 3,
      maxDelay: algorithm === 'leaky_bucket' ? '10s' : undefined
    })
    for (const cost of [2, 1]) assert.equal((await limiter.check('a', { cost, limit: 5 })).allowed, true)
    await limiter.refund('a', 2)
    assert.equal((await limiter.peek('a', { limit: 5 })).remaining, 4)
  })
}

test('after close every call says so, and close may be called again', async () => {
  const limiter = open()
  await limiter.close()
  await limiter.close()
  const closed = { code: 'ERR_SLUICEGATE_CLOSED' }
  for (const method of ['check', 'peek', 'refund', 'reset', 'unblock'])
    await assert.rejects(limiter[method]('a'), closed)
  await assert.rejects(limiter.block('a', 1), closed)
  await assert.rejects(limiter.keyOf({}), closed)
  assert.throws(() => limiter.checkSync('a'), closed)
})

test('a limiter shows no secret when it is printed or written as JSON', () => {
  const jwt = { secret: 'hunter2-hunter2-hunter2-hunter2-hunter2', algorithms: ['HS256'] }
  const limiter = open({ keyExtractor: 'jwt-sub', jwt, name: 'shown' })
  for (const text of [
    inspect(limiter, { depth: 9, showHidden: true }),
    JSON.stringify(limiter),
    String(limiter)
  ]) {
    assert.doesNotMatch(text, /hunter2/)
  }
  assert.match(inspect(limiter), /RateLimiter \{[^]*shown/)
})
