// The examples, each as a process of its own: what they print is what the README promises.
'use strict'

const assert = require('node:assert/strict')
const { spawn } = require('node:child_process')
const path = require('node:path')
const { test } = require('node:test')

const { request, times } = require('./support/server.js')

/** Starts an example on a free port; `said` resolves with its output as soon as `pattern` is in it. */
function start(t, name, pattern) {
  const child = spawn(process.execPath, [path.join(__dirname, '..', 'examples', name)], {
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  t.after(() => child.kill())
  return new Promise((resolve, reject) => {
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
      if (pattern.test(output)) resolve(output)
    })
    child.on('exit', (status) => reject(new Error(`${name} ended with ${status} after: ${output}`)))
  })
}

for (const name of ['fastify.mjs', 'express.mjs']) {
  test(`${name} lets five requests through and tells the sixth when to come again`, async (t) => {
    const output = await start(t, name, /curl -i .*\n/)
    const url = /curl -i (\S+)/.exec(output)[1]
    const { hostname: host, port } = new URL(url)
    assert.equal(host, '127.0.0.1')

    const responses = []
    for (let count = 0; count < 6; count++) responses.push(await request({ host, port, path: '/' }))

    assert.deepEqual(
      responses.map(({ status }) => status),
      [...times(5, 200), 429]
    )
    assert.deepEqual(
      responses.map(({ headers }) => headers['x-ratelimit-remaining']),
      ['4', '3', '2', '1', '0', '0']
    )
    assert.deepEqual(responses[0].body, { hello: 'world', remaining: 4 })
    const denied = responses[5]
    assert.equal(denied.headers['x-ratelimit-limit'], '5')
    const wait = Number(denied.headers['retry-after'])
    assert.ok(Number.isInteger(wait) && wait >= 1 && wait <= 20, `Retry-After: ${wait}`)
    assert.equal(denied.headers['content-type'], 'application/problem+json')
    assert.equal(denied.body.status, 429)
  })
}

test('limiter.mjs denies a job, waits as long as it was told, and starts it', async (t) => {
  const output = await start(t, 'limiter.mjs', /(.*\n){5}/)
  assert.match(
    output,
    new RegExp(
      [
        'user:1 small: started, 9 left',
        'user:1 large: started, 1 left',
        'user:2 large: started, 2 left',
        'user:1 large: denied, again in \\d+ ms',
        'user:1 large: started, 0 left\n'
      ].join('\n')
    )
  )
})
