// Functions of the user: key, cost, limit and skip. Their faults are the app's errors, never a way around the limit (F11).
'use strict'

const assert = require('node:assert/strict')
const { test } = require('node:test')

const { ManualClock, createRateLimiter, expressRateLimit } = require('..')
const { FASTIFY, FRAMEWORKS, memoryLogger, serve, times } = require('./support/server.js')

function limited(more) {
  return { limit: 2, window: '1m', clock: new ManualClock(0), ...more }
}

for (const framework of FRAMEWORKS) {
  /** A server whose error handler remembers what came. */
  const serveWithErrors = async (t, options) => {
    const errors = []
    const app = await serve(t, framework, options, {
      routes(app) {
        if (FASTIFY.includes(framework)) {
          app.setErrorHandler((error, req, reply) => {
            errors.push(error)
            reply.code(500).send({})
          })
        } else {
          app.use((error, req, res, next) => {
            errors.push(error)
            res.status(500).json({})
            void next
          })
        }
      }
    })
    return { ...app, errors }
  }

  for (const [how, keyExtractor] of [
    ['sync', (req) => req.headers['x-user']],
    ['async', async (req) => req.headers['x-user']]
  ]) {
    test(`${framework}: a ${how} keyExtractor names the client`, async (t) => {
      const app = await serve(t, framework, limited({ keyExtractor }))
      assert.deepEqual(await app.statuses(3, '/', { 'x-user': 'a' }), [200, 200, 429])
      assert.deepEqual(await app.statuses(3, '/', { 'x-user': 'b' }), [200, 200, 429])
    })

    test(`F11 ${framework}: a ${how} keyExtractor that gives nothing leaves the address, said once`, async (t) => {
      const logger = memoryLogger()
      const app = await serve(t, framework, limited({ keyExtractor, logger }))
      assert.deepEqual(await app.statuses(3), [200, 200, 429])
      assert.equal((await app.get('/', { 'x-user': '' })).status, 429)
      assert.equal((await app.get('/', { 'x-user': '127.0.0.1' })).status, 200)
      assert.equal(logger.of('warn').filter((line) => /keyExtractor gave nothing/.test(line)).length, 1)
    })
  }

  const faults = {
    'throws an Error': [
      () => {
        throw new Error('mine')
      },
      undefined
    ],
    'rejects with an Error': [() => Promise.reject(new Error('mine')), undefined],
    'returns a number': [() => 5, 'ERR_SLUICEGATE_INVALID_KEY'],
    'returns an object': [() => ({}), 'ERR_SLUICEGATE_INVALID_KEY'],
    'returns true': [() => true, 'ERR_SLUICEGATE_INVALID_KEY'],
    'resolves to a number': [async () => 5, 'ERR_SLUICEGATE_INVALID_KEY'],
    'resolves to a list': [async () => [], 'ERR_SLUICEGATE_INVALID_KEY']
  }
  for (const [how, [keyExtractor, code]] of Object.entries(faults)) {
    test(`F11 ${framework}: a keyExtractor that ${how} is the app's error and never unlimited`, async (t) => {
      const app = await serveWithErrors(t, limited({ keyExtractor }))
      assert.deepEqual(await app.statuses(3), times(3, 500))
      assert.equal(app.handled.count, 0)
      for (const error of app.errors) {
        assert.equal(error.code, code)
        if (code === undefined) assert.equal(error.message, 'mine')
        else assert.ok(error instanceof TypeError)
      }
      assert.equal(app.errors.length, 3)
    })
  }

  test(`${framework}: cost as a function is charged, and cost 0 only asks`, async (t) => {
    const cost = (req) => Number(req.headers['x-cost'])
    const app = await serve(t, framework, limited({ limit: 10, cost }))
    assert.equal((await app.get('/', { 'x-cost': '7' })).headers['x-ratelimit-remaining'], '3')
    assert.equal((await app.get('/', { 'x-cost': '0' })).headers['x-ratelimit-remaining'], '3')
    assert.equal((await app.get('/', { 'x-cost': '4' })).status, 429)
    assert.equal((await app.get('/', { 'x-cost': '3' })).status, 200)
  })

  test(`A05 ${framework}: a bad cost is the app's error and counts nothing`, async (t) => {
    const bad = [-1, -1e9, NaN, Infinity, '5', '5; DROP', null, true, 1.5, 2 ** 53, 1e308, undefined, 10n, {}]
    let next
    const app = await serveWithErrors(t, limited({ cost: () => next }))
    for (next of bad) assert.equal((await app.get()).status, 500, String(next))
    for (const error of app.errors) assert.equal(error.code, 'ERR_SLUICEGATE_INVALID_COST')
    next = 1
    assert.deepEqual(await app.statuses(3), [200, 200, 429])
  })

  test(`${framework}: limit as a function takes effect at once, and a bad one never lets through`, async (t) => {
    let limit = 3
    const app = await serveWithErrors(t, limited({ limit: () => limit }))
    assert.equal((await app.get()).headers['x-ratelimit-limit'], '3')
    assert.deepEqual(await app.statuses(3), [200, 200, 429])
    limit = 5
    assert.deepEqual(await app.statuses(3), [200, 200, 429])
    for (limit of [undefined, NaN, -1, '5', 1.5, Promise.resolve(5)]) {
      assert.equal((await app.get()).status, 500, String(limit))
      assert.equal(app.errors.at(-1).code, 'ERR_SLUICEGATE_INVALID_LIMIT')
    }
  })

  test(`${framework}: skip lets through unseen, and an async one is refused`, async (t) => {
    const app = await serve(t, framework, limited({ limit: 0, skip: (req) => req.method === 'OPTIONS' }))
    assert.equal((await app.get()).status, 429)
    const skipped = await app.get('/', {}, { method: 'OPTIONS' })
    assert.equal(skipped.headers['x-ratelimit-limit'], undefined)
    assert.notEqual(skipped.status, 429)
    const wrong = await serveWithErrors(t, limited({ skip: async () => false }))
    assert.equal((await wrong.get()).status, 500)
    assert.equal(wrong.errors[0].code, 'ERR_SLUICEGATE_INVALID_SKIP')
  })
}

test('keyOf gives the text that counts, however long the key of a function is and whatever is in it', async () => {
  const limiter = createRateLimiter({ limit: 2, window: '1m', keyExtractor: (req) => req.key })
  const app = expressRateLimit({ limit: 2, window: '1m', keyExtractor: (req) => req.key })
  for (const key of [
    'a',
    'x'.repeat(600),
    'ip:1.2.3.4',
    `key:${'é'.repeat(600)}`,
    'custom:',
    '\ud800',
    '\udc00'
  ]) {
    const text = await app.keyOf({ key })
    const res = { headersSent: true, setHeader() {} }
    await new Promise((resolve) => app({ key, socket: {}, headers: {} }, res, resolve))
    assert.equal((await app.limiter.peek(text)).remaining, 1, key.slice(0, 20))
    await limiter.check(text)
    assert.equal((await limiter.peek(await limiter.keyOf({ key }))).remaining, 1)
  }
  assert.equal(await app.keyOf({ key: ' ', ip: '1.2.3.4' }), 'ip:1.2.3.4')
})
