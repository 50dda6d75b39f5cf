// Leaky bucket: the middleware waits out the queue, and gives the wait up when the client leaves.
'use strict'

const assert = require('node:assert/strict')
const net = require('node:net')
const { mock, test } = require('node:test')

const { ManualClock } = require('..')
const { FRAMEWORKS, serve } = require('./support/server.js')

const LEAKY = { algorithm: 'leaky_bucket', limit: 10, window: '1s', burst: 3 }

/** Runs `body` with setTimeout replaced: waits are noted, and end when told to. */
async function withTimers(delays, body) {
  const real = globalThis.setTimeout
  const held = []
  mock.method(globalThis, 'setTimeout', (run, ms, ...rest) => {
    if (!delays.includes(ms)) return real(run, ms, ...rest)
    const timer = real(() => {}, 0)
    held.push({ ms, run, timer })
    return timer
  })
  const clear = globalThis.clearTimeout
  const cleared = []
  mock.method(globalThis, 'clearTimeout', (timer) => {
    if (held.some((wait) => wait.timer === timer)) cleared.push(timer)
    return clear(timer)
  })
  try {
    await body(held, cleared)
  } finally {
    mock.restoreAll()
  }
}

async function until(condition) {
  for (let turn = 0; turn < 2000 && !condition(); turn++)
    await new Promise((resolve) => setImmediate(resolve))
  assert.ok(condition(), 'it did not come about')
}

for (const framework of FRAMEWORKS) {
  test(`${framework}: a request waits its delayMs in the queue of a leaky bucket, and the one behind it is denied`, async (t) => {
    const app = await serve(t, framework, { ...LEAKY, clock: new ManualClock(0) })
    await withTimers([100, 200], async (held) => {
      assert.equal((await app.get()).status, 200)
      const second = app.get()
      await until(() => held.length === 1)
      const third = app.get()
      await until(() => held.length === 2)
      assert.deepEqual(
        held.map((wait) => wait.ms),
        [100, 200]
      )
      assert.equal(app.handled.count, 1)
      assert.equal((await app.get()).status, 429)
      for (const wait of held) wait.run()
      assert.equal((await second).status, 200)
      assert.equal((await third).body.rateLimit.delayMs, 200)
      assert.equal(app.handled.count, 3)
    })
  })

  test(`${framework}: a longer wait than maxDelay is a denial`, async (t) => {
    const app = await serve(t, framework, { ...LEAKY, maxDelay: '50ms', clock: new ManualClock(0) })
    assert.deepEqual(await app.statuses(2), [200, 429])
  })

  test(`${framework}: when the client leaves, its wait is given up and the handler never runs`, async (t) => {
    const app = await serve(t, framework, { ...LEAKY, clock: new ManualClock(0) })
    await withTimers([100], async (held, cleared) => {
      await app.get()
      const socket = net.connect(app.port, '127.0.0.1')
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
      await until(() => held.length === 1)
      socket.destroy()
      await until(() => cleared.length === 1)
      assert.equal(cleared[0], held[0].timer)
      assert.equal(app.handled.count, 1)
    })
  })
}
