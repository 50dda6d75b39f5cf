// Which rate-limit headers a response carries: the forms, and what stays when several limiters answer one request.
'use strict'

const assert = require('node:assert/strict')
const { test } = require('node:test')

const { ManualClock, expressRateLimit, rateLimitPlugin } = require('..')
const { FASTIFY, FRAMEWORKS, serve } = require('./support/server.js')

const CLOCK = 1_728_000_000_000

function fixed(more) {
  return { limit: 2, window: '10s', algorithm: 'fixed_window', clock: new ManualClock(CLOCK), ...more }
}

function rateLimitHeaders(response) {
  return Object.fromEntries(Object.entries(response.headers).filter(([name]) => name.includes('ratelimit')))
}

const FORMS = [
  [
    'x-ratelimit',
    { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '1728000010' }
  ],
  [
    'draft-6',
    {
      'ratelimit-policy': '2;w=10',
      'ratelimit-limit': '2',
      'ratelimit-remaining': '1',
      'ratelimit-reset': '10'
    }
  ],
  ['draft-7', { 'ratelimit-policy': '2;w=10', ratelimit: 'limit=2, remaining=1, reset=10' }],
  ['draft-8', { 'ratelimit-policy': '"2-per-10s";q=2;w=10', ratelimit: '"2-per-10s";r=1;t=10' }]
]

for (const framework of FRAMEWORKS) {
  for (const [form, expected] of FORMS) {
    test(`${framework}: headers '${form}'`, async (t) => {
      const app = await serve(t, framework, fixed({ headers: form }))
      assert.deepEqual(rateLimitHeaders(await app.get()), expected)
      await app.get()
      const denied = await app.get()
      assert.equal(denied.status, 429)
      assert.equal(denied.headers['retry-after'], '10')
    })
  }

  test(`${framework}: a list of forms sends them all, false none`, async (t) => {
    const both = await serve(t, framework, fixed({ headers: ['x-ratelimit', 'draft-8'] }))
    assert.deepEqual(rateLimitHeaders(await both.get()), { ...FORMS[0][1], ...FORMS[3][1] })
    const none = await serve(t, framework, fixed({ headers: false, limit: 0 }))
    const denied = await none.get()
    assert.equal(denied.status, 429)
    assert.deepEqual(rateLimitHeaders(denied), {})
  })

  test(`${framework}: reset 'delta' counts seconds from now`, async (t) => {
    const app = await serve(t, framework, fixed({ reset: 'delta', limit: 1 }))
    assert.equal((await app.get()).headers['x-ratelimit-reset'], '10')
    assert.equal((await app.get()).status, 429)
  })

  test(`${framework}: of two limiters the stricter one's headers and decision stay, whatever their order`, async (t) => {
    for (const [first, second] of [
      [5, 3],
      [3, 5]
    ]) {
      const app = await serve(t, framework, fixed({ limit: first }), {
        before: add(fixed({ limit: second }))
      })
      const response = await app.get()
      assert.equal(response.headers['x-ratelimit-limit'], '3')
      assert.equal(response.headers['x-ratelimit-remaining'], '2')
      assert.equal(response.body.rateLimit.limit, 3)
      assert.deepEqual(await app.statuses(3), [200, 200, 429])
    }
  })

  test(`${framework}: the stricter limiter's form takes the place of the laxer one's`, async (t) => {
    const app = await serve(t, framework, fixed({ limit: 1, headers: 'draft-8' }), {
      before: add(fixed({ limit: 5, headers: ['x-ratelimit', 'draft-6'] }))
    })
    const response = await app.get()
    assert.deepEqual(rateLimitHeaders(response), {
      'ratelimit-policy': '"1-per-10s";q=1;w=10',
      ratelimit: '"1-per-10s";r=0;t=10'
    })
    assert.equal((await app.get()).status, 429)
  })

  test(`${framework}: several policies show the one that binds`, async (t) => {
    const limits = [
      { limit: 5, window: '1s', algorithm: 'fixed_window' },
      { limit: 2, window: '1h', algorithm: 'fixed_window' }
    ]
    const app = await serve(t, framework, { limits, clock: new ManualClock(CLOCK) })
    const response = await app.get()
    assert.equal(response.headers['x-ratelimit-limit'], '2')
    await app.get()
    const denied = await app.get()
    assert.equal(denied.status, 429)
    assert.equal(denied.headers['retry-after'], '3600')
    assert.deepEqual(denied.body['violated-policies'], ['2-per-1h'])
  })

  test(`${framework}: a request that no rule limits carries no numbers`, async (t) => {
    const rules = { tenants: { default: { routes: [{ match: { path: '/a' }, limit: 1, window: '1m' }] } } }
    const app = await serve(t, framework, { rules, clock: new ManualClock(CLOCK) })
    assert.deepEqual(rateLimitHeaders(await app.get('/free')), {})
    assert.deepEqual(await app.statuses(2, '/a'), [200, 429])
  })

  function add(options) {
    return (app) =>
      FASTIFY.includes(framework)
        ? app.register(rateLimitPlugin, options)
        : app.use(expressRateLimit(options))
  }
}
