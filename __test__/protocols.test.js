// CORS, WebSocket upgrades, server-sent events, HTTP/2 (F12, F14, K14).
'use strict'

const assert = require('node:assert/strict')
const http = require('node:http')
const http2 = require('node:http2')
const { once } = require('node:events')
const { test } = require('node:test')

const WebSocket = require('ws')

const { ManualClock, createRateLimiter, rateLimitPlugin } = require('..')
const { EXPRESS, FRAMEWORKS, serve } = require('./support/server.js')

function limited(more) {
  return { limit: 2, window: '1m', clock: new ManualClock(0), ...more }
}

/** A WebSocket handshake: the status it was refused with, or 101. */
function handshake(port, path = '/') {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`)
    socket.on('open', () => {
      socket.terminate()
      resolve(101)
    })
    socket.on('unexpected-response', (req, res) => {
      res.resume()
      res.socket.once('close', () => resolve(res.statusCode))
      res.socket.end()
    })
    socket.on('error', reject)
  })
}

const preflight = { method: 'OPTIONS' }
const origin = { origin: 'http://there', 'access-control-request-method': 'POST' }

test('F12 fastify: registered after the CORS plugin, a 429 keeps its headers and preflights cost nothing', async (t) => {
  const app = await serve(t, 'fastify', limited({ skip: (req) => req.method === 'OPTIONS' }), {
    methods: ['GET', 'POST'],
    before: (app) => app.register(require('@fastify/cors'), { origin: true, exposedHeaders: ['Retry-After'] })
  })
  const statuses = []
  for (let n = 0; n < 3; n++) {
    assert.equal((await app.get('/', origin, preflight)).status, 204)
    statuses.push((await app.get('/', origin, { method: 'POST' })).status)
  }
  assert.deepEqual(statuses, [200, 200, 429])
  const denied = await app.get('/', origin, { method: 'POST' })
  assert.equal(denied.headers['access-control-allow-origin'], 'http://there')
  assert.match(denied.headers['access-control-expose-headers'], /Retry-After/)
})

for (const framework of EXPRESS) {
  test(`F12 ${framework}: after a middleware that sets CORS headers, a 429 keeps them and preflights cost nothing`, async (t) => {
    const app = await serve(t, framework, limited(), {
      before: (app) =>
        app.use((req, res, next) => {
          res.set({
            'Access-Control-Allow-Origin': 'http://there',
            'Access-Control-Expose-Headers': 'Retry-After'
          })
          if (req.method === 'OPTIONS') res.status(204).end()
          else next()
        })
    })
    const statuses = []
    for (let n = 0; n < 3; n++) {
      assert.equal((await app.get('/', origin, preflight)).status, 204)
      statuses.push((await app.get('/', origin, { method: 'POST' })).status)
    }
    assert.deepEqual(statuses, [200, 200, 429])
    const denied = await app.get('/', origin, { method: 'POST' })
    assert.equal(denied.headers['access-control-allow-origin'], 'http://there')
    assert.equal(denied.headers['access-control-expose-headers'], 'Retry-After')
    assert.ok(Number(denied.headers['retry-after']) >= 1)
  })
}

for (const framework of FRAMEWORKS) {
  test(`F12 ${framework}: preflights count like any request, unless skip says otherwise`, async (t) => {
    const counting = await serve(t, framework, limited())
    assert.deepEqual(await counting.statuses(3, '/', origin, preflight), [200, 200, 429])
    const skipping = await serve(t, framework, limited({ skip: (req) => req.method === 'OPTIONS' }))
    assert.deepEqual(await skipping.statuses(3, '/', origin, preflight), [200, 200, 200])
    assert.deepEqual(await skipping.statuses(3), [200, 200, 429])
  })

  test(`F14 ${framework}: a response that streams has its headers, and the next one is denied`, async (t) => {
    const app = await serve(t, framework, limited({ limit: 1 }), {
      handle(req, res) {
        if (framework.startsWith('fastify')) res.hijack()
        const raw = res.raw ?? res
        raw.writeHead(200, { 'content-type': 'text/event-stream' })
        raw.end('data: 1\n\n')
        return {}
      }
    })
    const first = await app.get()
    assert.equal(first.text, 'data: 1\n\n')
    assert.equal((await app.get()).status, 429)
  })
}

test('F14 fastify: the third handshake of a WebSocket route gets a 429 and a closed socket', async (t) => {
  const app = require('fastify')()
  t.after(() => app.close())
  await app.register(require('@fastify/websocket'))
  await app.register(rateLimitPlugin, limited())
  app.get('/ws', { websocket: true }, () => {})
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address()
  assert.equal(await handshake(port, '/ws'), 101)
  assert.equal(await handshake(port, '/ws'), 101)
  assert.equal(await handshake(port, '/ws'), 429)
  assert.equal((await app.inject('/')).statusCode, 429)
})

test("F14 express: on the server's upgrade event, the generic limiter decides", async (t) => {
  const limiter = createRateLimiter(limited())
  const server = http.createServer()
  const sockets = new WebSocket.Server({ noServer: true })
  server.on('upgrade', async (req, socket, head) => {
    const decision = await limiter.check(await limiter.keyOf(req))
    if (decision.allowed) sockets.handleUpgrade(req, socket, head, () => {})
    else socket.end('HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address()
  assert.deepEqual([await handshake(port), await handshake(port), await handshake(port)], [101, 101, 429])
})

test('K14 fastify: over HTTP/2 the key header is found, and pseudo-headers are no credentials', async (t) => {
  const app = require('fastify')({ http2: true })
  t.after(() => app.close())
  await app.register(rateLimitPlugin, limited({ keyExtractor: 'api-key-header', keyHeader: 'X-API-Key' }))
  app.get('/', async () => 'ok')
  await app.listen({ port: 0, host: '127.0.0.1' })
  const session = http2.connect(`http://127.0.0.1:${app.server.address().port}`)
  t.after(() => session.destroy())
  const ask = async (headers) => {
    const stream = session.request({ ':path': '/', ...headers })
    const [response] = await once(stream, 'response')
    stream.resume()
    return response
  }
  const statuses = []
  for (let n = 0; n < 3; n++) statuses.push((await ask({ 'x-api-key': 'A' }))[':status'])
  assert.deepEqual(statuses, [200, 200, 429])
  assert.equal((await ask({ 'x-api-key': 'B' }))[':status'], 200)
  assert.equal((await ask({}))['x-ratelimit-remaining'], '1')
})
