// Who a request counts for: forged addresses, missing addresses, API keys, tokens (K01 to K03, K06 to K11, K14, K16).
'use strict'

const assert = require('node:assert/strict')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { test } = require('node:test')
const { inspect } = require('node:util')

const { ManualClock, createRateLimiter } = require('..')
const { EXPRESS, FASTIFY, FRAMEWORKS, memoryLogger, serve, times } = require('./support/server.js')

function limited(more) {
  return { limit: 5, window: '1m', clock: new ManualClock(0), ...more }
}

const isFastify = (framework) => FASTIFY.includes(framework)

/** One trusted hop, as each framework wants it said. */
function oneProxy(framework) {
  return isFastify(framework) ? { trustProxy: '127.0.0.1' } : { 'trust proxy': 1 }
}

for (const framework of FRAMEWORKS) {
  test(`K01 ${framework}: forwarding headers are ignored without trust`, async (t) => {
    const app = await serve(t, framework, limited())
    for (const name of ['x-forwarded-for', 'x-real-ip', 'forwarded', 'cf-connecting-ip']) {
      await app.limiter.reset('ip:127.0.0.1')
      const statuses = []
      for (let n = 0; n < 7; n++) statuses.push((await app.get('/', { [name]: `10.0.0.${n}` })).status)
      assert.deepEqual(statuses, [...times(5, 200), 429, 429], name)
    }
  })

  test(`K01 ${framework}: with one trusted hop the right-most entry counts`, async (t) => {
    const app = await serve(t, framework, limited(), { app: oneProxy(framework) })
    const ask = async (chain) => (await app.get('/', { 'x-forwarded-for': chain })).status
    const statuses = []
    for (let n = 0; n < 6; n++) statuses.push(await ask(`9.9.9.${n}, 203.0.113.7`))
    assert.deepEqual(statuses, [...times(5, 200), 429])
    assert.equal(await ask('9.9.9.9, 203.0.113.8'), 200)
  })

  test(`K06 ${framework}: ports and brackets of a forwarded address are no other client`, async (t) => {
    const app = await serve(t, framework, limited({ ipv6Subnet: false }), { app: oneProxy(framework) })
    const ask = async (chain) => (await app.get('/', { 'x-forwarded-for': chain })).status
    const statuses = []
    for (const port of [1, 2, 3, 4, 5, 6]) statuses.push(await ask(`203.0.113.7:4100${port}`))
    assert.deepEqual(statuses, [...times(5, 200), 429])
    assert.equal(await ask(', 203.0.113.7'), 429)
    const six = ['2001:db8::1', '[2001:db8::1]', '[2001:db8::1]:5000', '"[2001:db8::1]:5000"', '2001:DB8::1']
    for (const spelling of six) assert.equal(await ask(spelling), 200, spelling)
    for (const spelling of six) assert.equal(await ask(spelling), 429, spelling)
    assert.equal(await ask('2001:db8::1:5000'), 200)
    // What is no address counts by the socket, not by what it says.
    const unreadable = []
    for (let n = 0; n < 6; n++) unreadable.push(await ask(`unknown-${n}`))
    assert.deepEqual(unreadable, [...times(5, 200), 429])
    assert.equal((await app.limiter.peek('ip:127.0.0.1')).remaining, 0)
  })

  test(`K02 ${framework}: every spelling of a mapped address is its IPv4 client, and a neighbour is not`, async (t) => {
    const app = await serve(t, framework, limited(), { app: oneProxy(framework) })
    const ask = async (address) => (await app.get('/', { 'x-forwarded-for': address })).status
    const spellings = [
      '203.0.113.7',
      '::ffff:203.0.113.7',
      '::FFFF:cb00:7107',
      '0:0:0:0:0:ffff:203.0.113.7',
      '::ffff:203.0.113.7'
    ]
    for (const spelling of spellings) assert.equal(await ask(spelling), 200, spelling)
    for (const spelling of spellings) assert.equal(await ask(spelling), 429, spelling)
    assert.equal(await ask('::ffff:203.0.113.8'), 200)
  })

  test(`K02 ${framework}: a server of both families knows its IPv4 clients, lists included`, async (t) => {
    const listen = { port: 0, host: '::' }
    const app = await serve(t, framework, limited({ limit: 1 }), { listen })
    assert.deepEqual(await app.statuses(2), [200, 429])
    assert.equal((await app.limiter.peek('ip:127.0.0.1')).remaining, 0)
    const listed = await serve(t, framework, limited({ deny: ['127.0.0.1'] }), { listen })
    assert.equal((await listed.get()).status, 403)
  })

  test(`K03 ${framework}: all addresses of a /56 are one client, however they are written`, async (t) => {
    const app = await serve(t, framework, limited({ limit: 10 }), { app: oneProxy(framework) })
    const ask = async (address) => (await app.get('/', { 'x-forwarded-for': address })).status
    const statuses = []
    for (let n = 1; n <= 30; n++) statuses.push(await ask(`2001:db8:1:2::${(n * 33).toString(16)}`))
    assert.deepEqual(statuses, [...times(10, 200), ...times(20, 429)])
    for (const same of ['2001:DB8:1:2:0:0:0:1', '2001:0db8:0001:0002::1', '2001:db8:1:ff::1'])
      assert.equal(await ask(same), 429, same)
    assert.equal(await ask('2001:db8:1:100::1'), 200)
  })

  test(`K01 ${framework}: trusting everybody is warned about once`, async (t) => {
    const logger = memoryLogger()
    const app = await serve(t, framework, limited({ logger }), {
      app: isFastify(framework) ? { trustProxy: true } : { 'trust proxy': true }
    })
    await app.get()
    await app.get()
    assert.equal(logger.of('warn').filter((line) => /choose its own address/.test(line)).length, 1)
  })

  test(`K07 ${framework}: clients of a Unix socket share one bucket, said once, and nothing fails`, async (t) => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sluicegate-'))
    t.after(() => fs.rmSync(directory, { recursive: true, force: true }))
    const logger = memoryLogger()
    const socket = path.join(directory, 'app.sock')
    const app = await serve(t, framework, limited({ logger }), { listen: { path: socket } })
    assert.deepEqual(await app.statuses(6), [...times(5, 200), 429])
    assert.equal(logger.of('warn').filter((line) => /without an address/.test(line)).length, 1)
    assert.doesNotMatch(await app.keyOf({ headers: {} }), /undefined|null/)
  })

  test(`K07 ${framework}: a client that is gone before the check is decided without an address or an error`, async (t) => {
    const logger = memoryLogger()
    const errors = []
    let checked
    const done = new Promise((resolve) => (checked = resolve))
    const gone = (raw) => new Promise((resolve) => raw.socket.once('close', resolve))
    const app = await serve(
      t,
      framework,
      limited({ limit: 0, logger, onDenied: (req) => checked(req.rateLimit) }),
      {
        before(app) {
          if (isFastify(framework)) {
            app.addHook('onRequest', async (req) => gone(req.raw))
            app.addHook('onError', async (req, reply, error) => void errors.push(error))
          } else app.use((req, res, next) => void gone(req).then(() => next()))
        }
      }
    )
    const socket = net.connect(app.port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n', () => socket.resetAndDestroy())
    socket.on('error', () => {})
    assert.equal((await done).outcome, 'denied')
    assert.deepEqual(errors, [])
    assert.deepEqual(logger.of('error'), [])
  })

  test(`K08 ${framework}: without an API key the address counts, in its own name space`, async (t) => {
    const app = await serve(t, framework, limited({ keyExtractor: 'api-key-header' }), {
      app: oneProxy(framework)
    })
    const ask = async (address, key) => {
      const headers = { 'x-forwarded-for': address }
      if (key !== undefined) headers['x-api-key'] = key
      return (await app.get('/', headers)).status
    }
    for (const blank of [undefined, '', '   ']) {
      await app.limiter.reset('ip:203.0.113.7')
      const statuses = []
      for (let n = 0; n < 6; n++) statuses.push(await ask('203.0.113.7', blank))
      assert.deepEqual(statuses, [...times(5, 200), 429])
    }
    assert.equal(await ask('203.0.113.8'), 200)
    assert.equal(await ask('203.0.113.9', '203.0.113.7'), 200)
    assert.equal(await ask('203.0.113.9', 'anonymous'), 200)
  })

  test(`K09 ${framework}: with perAddress a new key for each request is no new quota`, async (t) => {
    const perAddress = { limit: 8, window: '1m' }
    const app = await serve(t, framework, limited({ keyExtractor: 'api-key-header', perAddress }))
    const statuses = []
    for (let n = 0; n < 10; n++) statuses.push((await app.get('/', { 'x-api-key': `random-${n}` })).status)
    assert.deepEqual(statuses, [...times(8, 200), 429, 429])
    const denied = await app.get('/', { 'x-api-key': 'another' })
    assert.deepEqual(denied.body['violated-policies'], ['per-address'])
  })

  test(`K10 ${framework}: tokens that are not signed are nobody's: they count by the address`, async (t) => {
    const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const forged = `${part({ alg: 'none' })}.${part({ sub: 'victim' })}.`
    const jwt = { secret: 'a secret of sufficient length, really', algorithms: ['HS256'] }
    const app = await serve(t, framework, limited({ keyExtractor: 'jwt-sub', jwt }))
    const statuses = await app.statuses(6, '/', { authorization: `Bearer ${forged}` })
    assert.deepEqual(statuses, [...times(5, 200), 429])
    assert.equal((await app.limiter.peek('sub:victim')).remaining, 5)
  })

  test(`K10 ${framework}: without jwt an unsigned token is nobody's either`, async (t) => {
    const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const app = await serve(t, framework, limited({ keyExtractor: 'jwt-sub', logger: memoryLogger() }))
    const ask = async (token) => (await app.get('/', { authorization: `Bearer ${token}` })).status
    const forged = (alg) => `${part({ alg })}.${part({ sub: 'victim' })}.`
    const statuses = []
    for (const alg of ['none', 'None', 'NONE', 'none', 'none', 'none', 'none', 'none', 'none', 'none'])
      statuses.push(await ask(forged(alg)))
    assert.deepEqual(statuses, [...times(5, 200), ...times(5, 429)])
    assert.equal(await ask(`${part({ alg: 'HS256' })}.${part({ sub: 'victim' })}.x`), 200)
  })

  test(`K16 ${framework}: API keys are told apart and shown nowhere`, async (t) => {
    const logger = memoryLogger()
    const app = await serve(t, framework, limited({ limit: 1, keyExtractor: 'api-key-header', logger }))
    const shown = []
    for (const key of ['sk_live_SECRET1', 'sk_live_SECRET2']) {
      const headers = { 'x-api-key': key }
      assert.equal((await app.get('/', headers)).status, 200)
      const denied = await app.get('/', headers)
      assert.equal(denied.status, 429)
      shown.push(denied.text, denied.rawHeaders, await app.keyOf({ headers }), inspect(app.limiter))
    }
    shown.push(logger.lines, app.limiter.stats())
    assert.doesNotMatch(JSON.stringify(shown), /SECRET/)
    assert.match(await app.keyOf({ headers: { 'x-api-key': 'sk_live_SECRET1' } }), /^key:[0-9a-f]{32}$/)
  })

  test(`K10 ${framework}: an unverified subject is believed only with a warning`, async (t) => {
    const logger = memoryLogger()
    const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const token = (sub) => `Bearer ${part({ alg: 'HS256' })}.${part({ sub })}.x`
    const app = await serve(t, framework, limited({ keyExtractor: 'jwt-sub', logger }))
    assert.deepEqual(await app.statuses(6, '/', { authorization: token('a') }), [...times(5, 200), 429])
    assert.equal((await app.get('/', { authorization: token('b') })).status, 200)
    assert.equal(logger.of('warn').filter((line) => /unverified/.test(line)).length, 1)
  })

  test(`K11 ${framework}: malformed tokens never fail and never go unlimited`, async (t) => {
    const app = await serve(
      t,
      framework,
      limited({ keyExtractor: 'jwt-sub', limit: 3, logger: memoryLogger() })
    )
    const part = (text) => Buffer.from(text).toString('base64url')
    const payloads = [
      'null',
      '[]',
      '"x"',
      '1',
      '{"sub":null}',
      '{"sub":123}',
      '{"sub":["a"]}',
      '{"sub":""}',
      '{'
    ]
    const tokens = [
      '',
      'a',
      'a.b',
      '..',
      'a.b.c.d.e',
      'x.!!.y',
      ...payloads.map((text) => `x.${part(text)}.y`)
    ]
    const statuses = []
    for (const token of tokens)
      statuses.push((await app.get('/', { authorization: `bearer ${token}` })).status)
    assert.deepEqual(statuses, [...times(3, 200), ...times(tokens.length - 3, 429)])
  })

  test(`K14 ${framework}: a key header written with capitals finds the header`, async (t) => {
    const app = await serve(t, framework, limited({ keyExtractor: 'api-key-header', keyHeader: 'X-API-Key' }))
    assert.deepEqual(await app.statuses(6, '/', { 'x-api-key': 'A' }), [...times(5, 200), 429])
    assert.equal((await app.get('/', { 'X-Api-Key': 'B' })).status, 200)
    assert.equal((await app.get('/', { 'X-API-KEY': 'A' })).status, 429)
  })

  test(`${framework}: composite counts address and API key together`, async (t) => {
    const app = await serve(t, framework, limited({ keyExtractor: 'composite', limit: 1 }), {
      app: oneProxy(framework)
    })
    const ask = async (address, key) =>
      (await app.get('/', { 'x-forwarded-for': address, 'x-api-key': key })).status
    assert.equal(await ask('203.0.113.7', 'a'), 200)
    assert.equal(await ask('203.0.113.7', 'a'), 429)
    assert.equal(await ask('203.0.113.7', 'b'), 200)
    assert.equal(await ask('203.0.113.8', 'a'), 200)
  })

  test(`${framework}: keyOf names the key that reset, block and refund take`, async (t) => {
    const app = await serve(t, framework, limited({ limit: 1 }))
    assert.deepEqual(await app.statuses(2), [200, 429])
    await app.limiter.reset(await app.keyOf({ ip: '127.0.0.1', headers: {} }))
    assert.deepEqual(await app.statuses(2), [200, 429])
    await app.limiter.refund(await app.keyOf({ ip: '127.0.0.1', headers: {} }))
    assert.deepEqual(await app.statuses(2), [200, 429])
    await app.limiter.block(await app.keyOf({ ip: '127.0.0.1', headers: {} }), 30_000, 'rude')
    const blocked = await app.get()
    assert.equal(blocked.status, 403)
    assert.equal(blocked.headers['retry-after'], '30')
    assert.equal(blocked.headers['content-type'], 'application/problem+json')
    assert.equal(blocked.headers['x-ratelimit-limit'], undefined)
  })
}

for (const framework of ['fastify']) {
  test(`${framework}: a number of hops, which it ignores, is warned about at registration`, async (t) => {
    const logger = memoryLogger()
    await serve(t, framework, limited({ logger }), { app: { trustProxy: 1 } })
    assert.equal(logger.of('warn').filter((line) => /ignores a number of hops/.test(line)).length, 1)
  })
}

for (const framework of EXPRESS) {
  test(`${framework}: a number of hops is how it should be said, and not warned about`, async (t) => {
    const logger = memoryLogger()
    const app = await serve(t, framework, limited({ logger, limit: 0 }), { app: { 'trust proxy': 1 } })
    assert.equal((await app.get()).status, 429)
    assert.deepEqual(logger.lines, [])
  })
}

test('K07 keyOf of a request without an address gives one named bucket, never "undefined"', async () => {
  const limiter = createRateLimiter(limited())
  const keys = []
  const none = [{ ip: undefined }, { ip: '' }, {}, { ip: null, socket: null }, { ip: 7 }, { ip: 'nonsense' }]
  for (const req of none) keys.push(await limiter.keyOf(req))
  assert.equal(new Set(keys).size, 1, keys.join())
  assert.doesNotMatch(keys[0], /undefined|null|^ip:$/)
})

test('K07 keyOf of an HTTP/2 request whose session is gone does not throw', async () => {
  const limiter = createRateLimiter(limited())
  const gone = {
    get socket() {
      throw new Error('ERR_HTTP2_SOCKET_UNBOUND')
    },
    get ip() {
      return this.socket.remoteAddress
    }
  }
  assert.equal(await limiter.keyOf(gone), await limiter.keyOf({}))
})

test('K14 keyOf reads the key header of Node, WHATWG and plain requests in any case', async () => {
  const limiter = createRateLimiter(limited({ keyExtractor: 'api-key-header', keyHeader: 'X-API-Key' }))
  const key = await limiter.keyOf({ headers: { 'x-api-key': 'A' } })
  assert.equal(await limiter.keyOf({ headers: new Headers({ 'X-Api-Key': 'A' }) }), key)
  assert.equal(await limiter.keyOf(new Request('http://a/', { headers: { 'X-API-KEY': 'A' } })), key)
  assert.equal(await limiter.keyOf({ headers: { 'X-Api-Key': 'A' } }), key)
  assert.equal(await limiter.keyOf({ headers: { 'X-API-KEY': 'A', 'X-Api-Key': 'B' } }), key)
  assert.notEqual(await limiter.keyOf({ headers: { 'X-Api-Key': 'B' } }), key)
  assert.equal(
    await limiter.keyOf({ headers: { 'x-api-key': ['A', 'B'] } }),
    await limiter.keyOf({ headers: { 'x-api-key': 'A, B' } })
  )
  assert.match(await limiter.keyOf({ ip: '192.0.2.1', headers: { ':authority': 'A' } }), /192\.0\.2\.1/)
})
