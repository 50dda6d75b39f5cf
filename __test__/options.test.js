// Options: unknown ones, contradictions and bad values throw at once and name what is allowed.
'use strict'

const assert = require('node:assert/strict')
const { test } = require('node:test')

const { createRateLimiter, expressRateLimit, rateLimitPlugin } = require('..')
const { FASTIFY } = require('./support/server.js')

const OK = { limit: 1, window: 1000 }

const BAD = [
  [{ ...OK, max: 5 }, 'UNKNOWN_OPTION', 'max', /allowed are .*limit, window/],
  [{}, 'MISSING_OPTION', '', /limit/],
  [{ limit: 1 }, 'MISSING_OPTION', '', /window/],
  [{ ...OK, failOpen: 'yes' }, 'INVALID_FAIL_OPEN', 'failOpen', /true or false, not "yes"/],
  [{ ...OK, onFailure: 'ignore' }, 'INVALID_ON_FAILURE', 'onFailure', /'open', 'closed', 'local'/],
  [{ ...OK, failOpen: true, onFailure: 'closed' }, 'CONTRADICTION', 'failOpen', /onFailure/],
  [{ ...OK, failOpen: false, onFailure: 'open' }, 'CONTRADICTION', 'failOpen', /onFailure/],
  [{ ...OK, failOpen: false, onFailure: 'local' }, 'CONTRADICTION', 'failOpen', /onFailure/],
  [{ ...OK, timeout: 0 }, 'INVALID_TIMEOUT', 'timeout', /1 to 60000/],
  [{ ...OK, timeout: NaN }, 'INVALID_TIMEOUT', 'timeout', /not NaN/],
  [{ ...OK, timeout: '100' }, 'INVALID_TIMEOUT', 'timeout', /not "100"/],
  [{ ...OK, denyCache: 1 }, 'INVALID_DENY_CACHE', 'denyCache', /true or false/],
  [{ ...OK, prefix: '' }, 'INVALID_PREFIX', 'prefix', /text/],
  [{ ...OK, onMiss: true }, 'INVALID_ON_MISS', 'onMiss', /function/],
  [{ ...OK, logger: {} }, 'INVALID_LOGGER', 'logger', /info/],
  [{ ...OK, logger: 'console' }, 'INVALID_LOGGER', 'logger', /object/],
  [{ ...OK, redisUrl: 'redis://u:hunter2@h' }, 'NOT_AVAILABLE', 'redisUrl', /later release/],
  [{ serviceUrl: 'http://h' }, 'NOT_AVAILABLE', 'serviceUrl', /later release/],
  [{ ...OK, serviceUrl: 'http://h', redisUrl: 'redis://h' }, 'CONTRADICTION', 'serviceUrl', /redisUrl/],
  [{ ...OK, checkSecret: 'hunter2' }, 'NOT_AVAILABLE', 'checkSecret', /later release/],
  [{ ...OK, tls: {} }, 'NOT_AVAILABLE', 'tls', /later release/],
  [{ ...OK, sentinel: {} }, 'NOT_AVAILABLE', 'sentinel', /later release/],
  [{ ...OK, functions: true }, 'NOT_AVAILABLE', 'functions', /later release/],
  [{ ...OK, limits: [OK] }, 'CONTRADICTION', undefined, /limits/],
  [{ ...OK, mode: 'dry' }, 'INVALID_MODE', 'mode', /'enforce', 'shadow'/],
  [{ ...OK, keyExtractor: 'user' }, 'INVALID_KEY_EXTRACTOR', 'keyExtractor', /api-key-header/],
  [{ ...OK, keyExtractor: 'api-key-header', keyHeader: 'a b' }, 'INVALID_KEY_HEADER', 'keyHeader', /./],
  [
    { ...OK, keyExtractor: 'api-key-header', keyHeader: ':authority' },
    'INVALID_KEY_HEADER',
    'keyHeader',
    /./
  ],
  [{ ...OK, headers: 'draft-9' }, 'INVALID_HEADERS', 'headers', /draft-8/],
  [{ ...OK, reset: 'iso' }, 'INVALID_RESET', 'reset', /'unix', 'delta'/],
  [{ ...OK, maxKeys: 0 }, 'INVALID_MAX_KEYS', 'maxKeys', /./],
  [{ ...OK, clock: { now: () => 0 } }, 'INVALID_CLOCK', 'clock', /ManualClock/],
  [{ ...OK, perAddress: 5 }, 'INVALID_PER_ADDRESS', 'perAddress', /./],
  [{ ...OK, ipv6Subnet: 31 }, 'INVALID_IPV6_SUBNET', 'ipv6Subnet', /./]
]

const MIDDLEWARE = [
  [{ ...OK, skip: true }, 'INVALID_SKIP', 'skip', /function, not true/],
  [{ ...OK, skipFailedRequests: 1 }, 'INVALID_SKIP_FAILED_REQUESTS', 'skipFailedRequests', /true or false/],
  [
    { ...OK, skipSuccessfulRequests: () => 1 },
    'INVALID_SKIP_SUCCESSFUL_REQUESTS',
    'skipSuccessfulRequests',
    /true or false/
  ],
  [{ ...OK, onDenied: 'ignore' }, 'INVALID_ON_DENIED', 'onDenied', /'throw' or a function/]
]

const FASTIFY_ONLY = [[{ ...OK, hook: 'onSend' }, 'INVALID_HOOK', 'hook', /'onRequest', 'preParsing'/]]

function expected(code, field, message) {
  return (error) => {
    assert.ok(error instanceof TypeError || error instanceof RangeError, error.stack)
    assert.equal(error.code, `ERR_SLUICEGATE_${code}`)
    if (field !== undefined) assert.equal(error.field, field)
    assert.match(error.message, message)
    assert.doesNotMatch(error.message, /hunter2/)
    return true
  }
}

for (const [options, code, field, message] of BAD) {
  test(`${code} ${field || ''} ${Object.keys(options)}`, async (t) => {
    assert.throws(() => createRateLimiter(options), expected(code, field, message))
    assert.throws(() => expressRateLimit(options), expected(code, field, message))
    for (const framework of FASTIFY) {
      const app = require(framework)()
      t.after(() => app.close())
      await assert.rejects(async () => app.register(rateLimitPlugin, options), expected(code, field, message))
    }
  })
}

for (const [options, code, field, message] of MIDDLEWARE) {
  test(`${code} ${field}: an option of the middleware alone`, async (t) => {
    assert.throws(() => expressRateLimit(options), expected(code, field, message))
    assert.throws(() => createRateLimiter(options), expected('UNKNOWN_OPTION', field, /allowed are/))
    const app = require('fastify')()
    t.after(() => app.close())
    await assert.rejects(async () => app.register(rateLimitPlugin, options), expected(code, field, message))
  })
}

for (const [options, code, field, message] of FASTIFY_ONLY) {
  test(`${code} ${field}: an option of Fastify alone`, async (t) => {
    assert.throws(() => expressRateLimit(options), expected('UNKNOWN_OPTION', field, /allowed are/))
    const app = require('fastify')()
    t.after(() => app.close())
    await assert.rejects(async () => app.register(rateLimitPlugin, options), expected(code, field, message))
  })
}

test('INVALID_OPTIONS: options that are no object', () => {
  for (const options of [undefined, null, 5, 'x', [], () => {}]) {
    assert.throws(() => createRateLimiter(options), expected('INVALID_OPTIONS', 'options', /object/))
    assert.throws(() => expressRateLimit(options), expected('INVALID_OPTIONS', 'options', /object/))
  }
})

test('options of the stores to come are taken where they contradict nothing', async () => {
  const options = {
    ...OK,
    failOpen: false,
    onFailure: 'closed',
    timeout: 50,
    denyCache: false,
    prefix: 'app'
  }
  const limiter = createRateLimiter({
    ...options,
    functions: false,
    onMiss() {},
    redisUrl: undefined,
    tls: null
  })
  assert.equal((await limiter.check('a')).allowed, true)
  assert.equal((await limiter.check('a')).allowed, false)
})
