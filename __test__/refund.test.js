// skipFailedRequests and skipSuccessfulRequests: the cost comes back when the response ends.
'use strict'

const assert = require('node:assert/strict')
const net = require('node:net')
const { test } = require('node:test')

const { ManualClock } = require('..')
const { FASTIFY, FRAMEWORKS, serve, times } = require('./support/server.js')

function limited(more) {
  return { limit: 2, window: '1m', algorithm: 'fixed_window', clock: new ManualClock(0), ...more }
}

async function until(condition) {
  for (let turn = 0; turn < 2000; turn++) {
    if (await condition()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.fail('it did not come about')
}

for (const framework of FRAMEWORKS) {
  const handle = (req, res) => {
    const status = Number(req.headers['x-status'] ?? 200)
    if (FASTIFY.includes(framework)) res.code(status)
    else res.status(status)
    return { status }
  }
  const remaining = async (app) => (await app.limiter.peek(await app.keyOf({ ip: '127.0.0.1' }))).remaining

  test(`${framework}: skipFailedRequests counts only responses below 400`, async (t) => {
    const app = await serve(t, framework, limited({ skipFailedRequests: true }), { handle })
    for (const status of ['400', '404', '500']) {
      assert.deepEqual(await app.statuses(4, '/', { 'x-status': status }), times(4, Number(status)))
    }
    assert.deepEqual(await app.statuses(3), [200, 200, 429])
  })

  test(`${framework}: skipSuccessfulRequests counts only responses from 400`, async (t) => {
    const app = await serve(t, framework, limited({ skipSuccessfulRequests: true }), { handle })
    assert.deepEqual(await app.statuses(4), times(4, 200))
    assert.deepEqual(await app.statuses(3, '/', { 'x-status': '401' }), [401, 401, 429])
    assert.equal((await app.get()).status, 429)
  })

  test(`${framework}: without either everything counts`, async (t) => {
    const app = await serve(t, framework, limited(), { handle })
    assert.deepEqual(await app.statuses(3, '/', { 'x-status': '500' }), [500, 500, 429])
  })

  test(`${framework}: the cost that was charged comes back, perAddress included`, async (t) => {
    const perAddress = { limit: 4, window: '1m', algorithm: 'fixed_window' }
    const options = { skipFailedRequests: true, cost: 2, perAddress, keyExtractor: 'api-key-header' }
    const app = await serve(t, framework, limited(options), { handle })
    for (let n = 0; n < 4; n++) {
      assert.equal((await app.get('/', { 'x-status': '500', 'x-api-key': `k${n}` })).status, 500)
    }
    const statuses = []
    for (let n = 0; n < 3; n++) statuses.push((await app.get('/', { 'x-api-key': `k${n}` })).status)
    assert.deepEqual(statuses, [200, 200, 429])
  })

  for (const [option, left] of [
    ['skipFailedRequests', 2],
    ['skipSuccessfulRequests', 1]
  ]) {
    test(`${framework}: ${option}: a client that leaves before the end counts as failed`, async (t) => {
      let arrived
      const waiting = new Promise((resolve) => (arrived = resolve))
      const app = await serve(t, framework, limited({ [option]: true }), {
        handle: (req, res) => {
          if (req.url !== '/hang') return undefined
          arrived()
          return new Promise((resolve) => (res.raw ?? res).once('close', () => resolve({})))
        }
      })
      const socket = net.connect(app.port, '127.0.0.1')
      socket.write('GET /hang HTTP/1.1\r\nHost: a\r\n\r\n')
      await waiting
      assert.equal(await remaining(app), 1)
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.destroy()
      await closed
      await until(async () => (await remaining(app)) === left)
      if (option === 'skipSuccessfulRequests') return
      assert.deepEqual(await app.statuses(3), [200, 200, 429])
    })
  }
}
