// Arguments of the generic limiter: what is not a number or text is refused before anything is counted (A05, N06, K18).
'use strict'

const assert = require('node:assert/strict')
const { test } = require('node:test')

const { ManualClock, createRateLimiter } = require('..')

const NOT_COSTS = [
  -1,
  -1e9,
  NaN,
  Infinity,
  -Infinity,
  '5',
  '5; DROP',
  true,
  1.5,
  2 ** 53,
  2 ** 53 + 2,
  1e308,
  18446744073709551616,
  10n,
  {},
  []
]

function open(more) {
  return createRateLimiter({
    limit: 2,
    window: '1m',
    algorithm: 'fixed_window',
    clock: new ManualClock(0),
    ...more
  })
}

test('A05 N06 a bad cost rejects with a TypeError or RangeError and changes nothing', async () => {
  const limiter = open()
  const bad = { code: 'ERR_SLUICEGATE_INVALID_COST' }
  for (const cost of NOT_COSTS) {
    const shown = typeof cost === 'object' ? 'object' : String(cost)
    await assert.rejects(limiter.check('a', { cost }), bad, shown)
    await assert.rejects(limiter.peek('a', { cost }), bad, shown)
    await assert.rejects(limiter.refund('a', cost), bad, shown)
    assert.throws(() => limiter.checkSync('a', { cost }), bad, shown)
    const error = await limiter.check('a', { cost }).catch((error) => error)
    assert.ok(error instanceof TypeError || error instanceof RangeError)
    assert.equal(error.field, 'cost')
  }
  assert.equal((await limiter.peek('a')).remaining, 2)
  assert.deepEqual(
    [
      (await limiter.check('a')).allowed,
      (await limiter.check('a')).allowed,
      (await limiter.check('a')).allowed
    ],
    [true, true, false]
  )
})

test('A05 a large but valid cost compares right and can never pass', async () => {
  const limiter = open()
  for (const cost of [2147483648, 4294967296, 4294967297, Number.MAX_SAFE_INTEGER]) {
    const decision = await limiter.check('a', { cost })
    assert.equal(decision.allowed, false, String(cost))
    assert.equal(decision.retryAfterMs, null)
  }
  assert.equal((await limiter.check('a', { cost: 2 })).allowed, true)
})

test('N06 cost 0 asks, undefined and null are the default', async () => {
  const limiter = open()
  assert.equal((await limiter.check('a', { cost: 0 })).remaining, 2)
  assert.equal((await limiter.check('a', { cost: undefined })).remaining, 1)
  assert.equal((await limiter.check('a', { cost: null })).remaining, 0)
  assert.equal((await limiter.check('a', { cost: 0 })).allowed, false)
})

test('N06 a bad limit of one check rejects and counts nothing', async () => {
  const limiter = open()
  for (const limit of [-1, NaN, 1.9, 2 ** 53, 1e10, '7', 10n, true, {}]) {
    await assert.rejects(
      limiter.check('a', { limit }),
      { code: 'ERR_SLUICEGATE_INVALID_LIMIT' },
      String(limit)
    )
  }
  assert.equal((await limiter.check('a', { limit: 3 })).remaining, 2)
  assert.equal((await limiter.check('a', { limit: 1 })).allowed, false)
  await assert.rejects(open({ limit: () => 3 }).check('a'), { code: 'ERR_SLUICEGATE_INVALID_LIMIT' })
})

test('N06 bad limits and windows throw when the limiter is made', () => {
  for (const limit of [-1, NaN, 1.9, 1e9 + 1, 2 ** 32, 2 ** 53 + 2, '7', '', 10n, true, [], Infinity]) {
    assert.throws(
      () => open({ limit }),
      { code: 'ERR_SLUICEGATE_INVALID_LIMIT', field: 'limit' },
      String(limit)
    )
  }
  for (const limit of [undefined, null]) {
    assert.throws(() => open({ limit }), { code: 'ERR_SLUICEGATE_MISSING_OPTION' })
  }
  for (const window of [-1, -5, 0, NaN, 1.9, 0.5, Infinity, 1e20, 10n, {}, 367 * 86_400_000]) {
    assert.throws(
      () => open({ window }),
      { code: 'ERR_SLUICEGATE_INVALID_WINDOW', field: 'window' },
      String(window)
    )
  }
})

test('N06 windows of 30 and 60 days keep their length, and every number of a decision is a number', async () => {
  for (const window of [2_592_000_000, 5_184_000_000, '60d']) {
    const limiter = open({ window, limit: 1 })
    await limiter.check('a')
    const decision = await limiter.check('a')
    assert.equal(decision.allowed, false)
    assert.equal(decision.retryAfterMs, typeof window === 'number' ? window : 5_184_000_000)
    for (const state of [decision, ...decision.policies]) {
      for (const field of ['limit', 'remaining', 'resetAt', 'nextAt', 'retryAfterMs', 'delayMs']) {
        assert.equal(typeof state[field], 'number', field)
      }
    }
    assert.deepEqual(JSON.parse(JSON.stringify(decision)), decision)
  }
})

test('F07 windows as text mean the same everywhere, and what is no window throws', () => {
  const rules = (window) => ({ rules: { tenants: { default: { default: { limit: 1, window } } } } })
  const resets = (options) => {
    const limiter = createRateLimiter({ clock: new ManualClock(0), ...options })
    return limiter.checkSync('a').resetAt
  }
  const policy = { limit: 1, algorithm: 'fixed_window' }
  for (const [window, ms] of [
    ['250ms', 250],
    ['10s', 10_000],
    ['1m', 60_000],
    ['1h', 3_600_000],
    ['1d', 86_400_000],
    [5, 5]
  ]) {
    assert.equal(resets({ ...policy, window }), ms)
    assert.equal(resets({ limits: [{ ...policy, window }] }), ms)
    assert.equal(
      createRateLimiter(rules(window)).checkSync('a').policy,
      createRateLimiter({ limit: 1, window }).checkSync('a').policy
    )
  }
  for (const window of [
    '1 minute',
    '60',
    '1 mes',
    '',
    '1.5h',
    '-1s',
    's',
    '1M',
    ' 1s',
    '1s ',
    '0s',
    '367d'
  ]) {
    for (const options of [{ limit: 1, window }, { limits: [{ limit: 1, window }] }, rules(window)]) {
      assert.throws(() => createRateLimiter(options), { code: 'ERR_SLUICEGATE_INVALID_WINDOW' }, window)
    }
  }
})

test('N06 a key that is no text rejects with a TypeError', async () => {
  const limiter = open()
  for (const key of [undefined, null, 5, true, {}, [], Symbol('a'), 10n, '']) {
    for (const method of ['check', 'peek', 'refund', 'reset', 'unblock']) {
      await assert.rejects(
        limiter[method](key),
        { code: 'ERR_SLUICEGATE_INVALID_KEY' },
        `${method} ${typeof key}`
      )
    }
    await assert.rejects(limiter.block(key, 1), { code: 'ERR_SLUICEGATE_INVALID_KEY' })
  }
})

test('K18 keys of odd characters are all different clients', async () => {
  const limiter = open({ limit: 1 })
  const keys = [
    '\ud800',
    '\ud801',
    'a\0b',
    'a',
    'a\r\nb',
    'é',
    'e\u0301',
    '😀',
    ' a',
    'b',
    '__proto__',
    'constructor',
    'x'.repeat(100_000)
  ]
  for (const key of keys)
    assert.equal((await limiter.check(key)).allowed, true, JSON.stringify(key.slice(0, 20)))
  for (const key of keys)
    assert.equal((await limiter.check(key)).allowed, false, JSON.stringify(key.slice(0, 20)))
})

test('options of a check that are no object reject', async () => {
  const limiter = open()
  for (const options of [5, 'x', null, true]) {
    await assert.rejects(limiter.check('a', options), { code: 'ERR_SLUICEGATE_INVALID_OPTIONS' })
  }
  await assert.rejects(limiter.keyOf(undefined), { code: 'ERR_SLUICEGATE_INVALID_KEY' })
})

test('a clock takes numbers only, and says so by its code', () => {
  const code = 'ERR_SLUICEGATE_INVALID_CLOCK'
  const clock = new ManualClock(5)
  for (const time of ['5', 1n, {}, [5], true, Symbol('5'), () => 5, new Number(5)]) {
    const wrong = { name: 'TypeError', code, field: 'clock' }
    assert.throws(() => new ManualClock(time), wrong)
    assert.throws(() => clock.set(time), wrong)
    assert.throws(() => clock.advance(time), wrong)
  }
  for (const time of [-6, NaN, Infinity, 8e12 + 1]) {
    const wrong = { name: 'RangeError', code, field: 'clock' }
    assert.throws(() => new ManualClock(time), wrong)
    assert.throws(() => clock.set(time), wrong)
    assert.throws(() => clock.advance(time), wrong)
  }
  for (const nothing of [undefined, null]) {
    assert.throws(() => clock.set(nothing), { name: 'TypeError', code })
    assert.throws(() => clock.advance(nothing), { name: 'TypeError', code })
  }
  assert.equal(clock.now(), 5)
})

test('a bad argument is refused where no rule is for the check, too', async () => {
  const rules = { tenants: { default: { routes: [{ match: { path: '/a' }, limit: 1, window: '1m' }] } } }
  const limiter = createRateLimiter({ rules, logger: { info() {}, warn() {}, error() {} } })
  const where = { path: '/b' }
  assert.equal((await limiter.check('a', where)).allowed, true)
  await assert.rejects(limiter.check('', where), { code: 'ERR_SLUICEGATE_INVALID_KEY' })
  await assert.rejects(limiter.check('a', { ...where, cost: -1 }), { code: 'ERR_SLUICEGATE_INVALID_COST' })
  await assert.rejects(limiter.refund('a', 1.5, where), { code: 'ERR_SLUICEGATE_INVALID_COST' })
  for (const field of ['method', 'path']) {
    const wrong = { name: 'TypeError', code: 'ERR_SLUICEGATE_INVALID_OPTIONS', field }
    await assert.rejects(limiter.check('a', { [field]: 5 }), wrong)
    await assert.rejects(limiter.peek('a', { [field]: {} }), wrong)
    await assert.rejects(limiter.refund('a', 1, { [field]: true }), wrong)
  }
})
