// Worker threads: limiters of one name share their counters exactly, and a thread may end at any moment (N04).
'use strict'

const assert = require('node:assert/strict')
const { once } = require('node:events')
const { test } = require('node:test')

const { createRateLimiter } = require('..')
const { startWorker } = require('./support/workers.js')

test('N04 two worker threads and the main thread with one name admit exactly the limit', async () => {
  const options = { name: 'workers.test', limit: 1000, window: '1d', algorithm: 'fixed_window' }
  const source = `
    const limiter = sluicegate.createRateLimiter(workerData)
    parentPort.on('message', async () => {
      let allowed = 0
      for (let n = 0; n < 2000; n++) if (limiter.checkSync('one').allowed) allowed++
      parentPort.postMessage(allowed)
    })
    parentPort.postMessage('ready')
  `
  const workers = [startWorker(source, options), startWorker(source, options)]
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const limiter = createRateLimiter(options)
  const answers = workers.map((worker) => once(worker, 'message'))
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin, a window has
  for (const worker of workers) worker.postMessage('go')
  let allowed = 0
  let denied = 0
  for (let n = 0; n < 2000; n++) {
    if ((await limiter.check('one')).allowed) allowed++
    else denied++
  }
  for (const [count] of await Promise.all(answers)) allowed += count
  assert.equal(allowed, 1000)
  assert.ok(denied > 0)
  await Promise.all(workers.map((worker) => worker.terminate()))
  assert.equal((await limiter.check('one')).allowed, false)
})

test('N04 without a name each thread counts for itself', async () => {
  const options = { limit: 1, window: '1d' }
  const source = `
    const limiter = sluicegate.createRateLimiter(workerData)
    parentPort.postMessage([limiter.checkSync('a').allowed, limiter.checkSync('a').allowed])
  `
  for (let n = 0; n < 2; n++)
    assert.deepEqual((await once(startWorker(source, options), 'message'))[0], [true, false])
})

test('N04 workers that end in the middle of checks hurt nobody: 24 of them, terminated or exiting', async () => {
  const options = { name: 'workers.test ending', limit: 10, window: '1d' }
  const limiter = createRateLimiter(options)
  const source = `
    const limiter = sluicegate.createRateLimiter(workerData.options)
    const file = sluicegate.createRateLimiter({ ...workerData.options, name: undefined })
    let n = 0
    const turn = () => {
      for (let i = 0; i < 50; i++) { limiter.check('k' + n++); file.checkSync('a') }
      if (n === 500) parentPort.postMessage('busy')
      if (n > 1000 && workerData.exits) process.exit(7)
      setImmediate(turn)
    }
    turn()
  `
  for (let round = 0; round < 4; round++) {
    const workers = Array.from({ length: 6 }, (_, n) => startWorker(source, { options, exits: n % 2 === 0 }))
    await Promise.all(
      workers.map(async (worker, n) => {
        const ended = once(worker, 'exit')
        await once(worker, 'message')
        if (n % 2 === 1) void worker.terminate()
        const [code] = await ended
        assert.equal(code, n % 2 === 0 ? 7 : 1)
      })
    )
    limiter.checkSync('main')
  }
  assert.equal(limiter.checkSync('main').remaining, 5)
  for (let n = 0; n < 5; n++) assert.equal(limiter.checkSync('main').allowed, true)
  assert.equal(limiter.checkSync('main').allowed, false)
})
