// Requests that arrive together: exactly the limit is admitted (express-rate-limit's memory store admits none, see research).
'use strict'

const assert = require('node:assert/strict')
const net = require('node:net')
const { test } = require('node:test')

const { ManualClock } = require('..')
const { FRAMEWORKS, serve } = require('./support/server.js')

/** Writes `count` requests in one go on one connection and gathers their statuses. */
function pipeline(port, count) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString('latin1')))
    socket.on('error', reject)
    socket.on('close', () =>
      resolve([...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => Number(match[1])))
    )
    const one = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
    const last = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
    socket.write(one.repeat(count - 1) + last)
  })
}

for (const framework of FRAMEWORKS) {
  for (const how of ['sync', 'async']) {
    test(`${framework}: 100 pipelined requests with a limit of 10 admit exactly 10 (${how} key)`, async (t) => {
      const keyExtractor = how === 'async' ? async () => 'one' : 'ip'
      const options = { limit: 10, window: '1m', clock: new ManualClock(0), keyExtractor }
      const app = await serve(t, framework, options)
      const statuses = await pipeline(app.port, 100)
      assert.equal(statuses.length, 100)
      assert.equal(statuses.filter((status) => status === 200).length, 10)
      assert.equal(statuses.filter((status) => status === 429).length, 90)
      assert.equal(app.handled.count, 10)
    })
  }
}
