// Keys that a function brings: one call at a time, seldom, and a failure leaves the keys at hand in use.
'use strict'

const assert = require('node:assert/strict')
const crypto = require('node:crypto')
const { test } = require('node:test')

const { ManualClock } = require('..')
const { FRAMEWORKS, memoryLogger, serve, times } = require('./support/server.js')

const NOW = 1_800_000_000

function keyPair(kid) {
  const { privateKey, publicKey } = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' } }
}

function token({ kid, privateKey }, sub) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg: 'RS256', kid })}.${part({ sub, exp: NOW + 3600 })}`
  return `Bearer ${signed}.${crypto.sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`
}

const [one, two, forged] = [keyPair('one'), keyPair('two'), keyPair('forged')]

for (const framework of FRAMEWORKS) {
  /** A server whose keys come from `jwks`. */
  const open = async (t, jwks, limit = 2) => {
    const clock = new ManualClock(NOW * 1000)
    const logger = memoryLogger()
    const jwt = { jwks, algorithms: ['RS256'] }
    const options = { limit, window: '1h', keyExtractor: 'jwt-sub', jwt, clock, logger }
    const app = await serve(t, framework, options)
    const ask = async (pair, sub) => (await app.get('/', { authorization: token(pair, sub) })).status
    return { ...app, clock, logger, ask }
  }

  test(`${framework}: keys are fetched when a token names one, once for all who wait, and verify it`, async (t) => {
    let calls = 0
    const app = await open(t, async () => {
      calls++
      await new Promise((resolve) => setImmediate(resolve))
      return { keys: [one.jwk] }
    })
    const statuses = await Promise.all(times(5, 0).map(() => app.ask(one, 'alice')))
    assert.deepEqual(statuses.sort(), [200, 200, 429, 429, 429])
    assert.equal(await app.ask(one, 'bob'), 200)
    assert.equal(calls, 1)
  })

  test(`${framework}: an unknown key asks again at most once in 30 seconds, and counts by the address`, async (t) => {
    let calls = 0
    let keys = [one.jwk]
    const app = await open(t, () => {
      calls++
      return { keys }
    })
    assert.equal(await app.ask(one, 'alice'), 200)
    const statuses = []
    for (let n = 0; n < 3; n++)
      statuses.push(await app.ask({ ...forged, kid: `made-up-${n}` }, `victim-${n}`))
    assert.deepEqual(statuses, [200, 200, 429])
    assert.equal(calls, 1)
    keys = [one.jwk, two.jwk]
    assert.equal(await app.ask(two, 'carol'), 429)
    app.clock.advance(30_000)
    assert.equal(await app.ask(two, 'carol'), 200)
    assert.equal(calls, 2)
  })

  test(`${framework}: a failure is said once, the old keys stay, and recovery is said too`, async (t) => {
    let fails = false
    const app = await open(t, () => {
      if (fails) throw new Error('keys are down')
      return JSON.stringify({ keys: [one.jwk] })
    })
    assert.equal(await app.ask(one, 'alice'), 200)
    fails = true
    for (let n = 0; n < 3; n++) {
      app.clock.advance(30_000)
      await app.ask(two, 'carol')
    }
    assert.equal(app.logger.of('error').filter((line) => /keys are down/.test(line)).length, 1)
    assert.equal(await app.ask(one, 'alice'), 200)
    assert.equal(await app.ask(one, 'alice'), 429)
    fails = false
    app.clock.advance(30_000)
    await app.ask(two, 'carol')
    assert.equal(app.logger.of('info').filter((line) => /came again/.test(line)).length, 1)
  })

  for (const [what, jwks] of [
    [
      'throws',
      () => {
        throw new Error('x')
      }
    ],
    ['gives nothing', () => undefined],
    ['gives something else', () => ({ keys: 'none' })],
    ['gives text that is no JSON', () => 'x']
  ]) {
    test(`${framework}: a jwks function that ${what} fails no request and unlimits none`, async (t) => {
      const app = await open(t, jwks)
      const statuses = []
      for (let n = 0; n < 3; n++) statuses.push(await app.ask(one, `alice-${n}`))
      assert.deepEqual(statuses, [200, 200, 429])
      assert.equal(app.logger.of('error').length, 1)
    })
  }
}
