// node:cluster: each worker counts alone, which is said once in each (F17).
'use strict'

const assert = require('node:assert/strict')
const { test } = require('node:test')

const { run } = require('./support/workers.js')

test('F17 in a cluster worker the memory store warns once that limits are per process', async () => {
  const ended = await run(`
    const cluster = require('node:cluster')
    if (cluster.isPrimary) {
      cluster.setupPrimary({ exec: process.argv[0], execArgv: process.execArgv })
      const worker = cluster.fork()
      worker.on('exit', (code) => process.exit(code))
    } else {
      const lines = []
      const logger = { info() {}, warn: (line) => lines.push(line), error() {} }
      for (let n = 0; n < 3; n++) {
        const limiter = sluicegate.createRateLimiter({ limit: 1, window: '1m', logger })
        if (!limiter.checkSync('a').allowed || limiter.checkSync('a').allowed) process.exit(2)
      }
      console.log(JSON.stringify(lines))
      process.exit(0)
    }`)
  assert.equal(ended.code, 0, ended.stderr)
  const lines = JSON.parse(ended.stdout)
  assert.equal(lines.length, 1)
  assert.match(lines[0], /per process/)
})
