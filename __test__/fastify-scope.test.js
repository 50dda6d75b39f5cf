// Which requests the Fastify plugin limits, and that it counts each of them once (F02 to F07).
'use strict'

const assert = require('node:assert/strict')
const { test } = require('node:test')

const { ManualClock, rateLimitPlugin } = require('..')
const { FASTIFY, memoryLogger } = require('./support/server.js')

function limited(limit, more) {
  return {
    limit,
    window: '1m',
    algorithm: 'fixed_window',
    clock: new ManualClock(0),
    logger: memoryLogger(),
    ...more
  }
}

const ok = async () => 'ok'

for (const framework of FASTIFY) {
  const open = (t, options) => {
    const app = require(framework)(options)
    t.after(() => app.close())
    return app
  }
  const statuses = async (app, count, request) => {
    const seen = []
    for (let index = 0; index < count; index++) seen.push((await app.inject(request)).statusCode)
    return seen
  }

  test(`F03 ${framework}: GET counts one unit, and HEAD one of the same quota`, async (t) => {
    const app = open(t, { exposeHeadRoutes: true })
    await app.register(rateLimitPlugin, limited(4))
    app.get('/', ok)
    app.get('/own', { config: { sluicegate: { limit: 4 } } }, ok)
    for (const url of ['/', '/own']) {
      await app.inject(url)
      assert.equal((await app.inject(url)).headers['x-ratelimit-remaining'], '2')
      assert.equal((await app.inject({ url, method: 'HEAD' })).headers['x-ratelimit-remaining'], '1')
      assert.deepEqual(await statuses(app, 2, url), [200, 429])
      assert.equal((await app.inject({ url, method: 'HEAD' })).statusCode, 429)
    }
  })

  test(`F03 ${framework}: both forms of a prefix's root are one route, counted once`, async (t) => {
    const app = open(t)
    await app.register(rateLimitPlugin, limited(100))
    app.register(
      async (scope) => {
        scope.get('/', { config: { sluicegate: { limit: 3 } } }, ok)
      },
      { prefix: '/api' }
    )
    assert.equal((await app.inject('/api')).headers['x-ratelimit-remaining'], '2')
    assert.equal((await app.inject('/api/')).headers['x-ratelimit-remaining'], '1')
    assert.deepEqual(await statuses(app, 2, '/api'), [200, 429])
    assert.equal((await app.inject('/api/')).statusCode, 429)
  })

  for (const awaited of [true, false]) {
    const how = awaited ? 'awaited' : 'not awaited'
    test(`F04 ${framework}: a root registration that is ${how} covers routes before and after it`, async (t) => {
      const app = open(t)
      app.get('/before', ok)
      app.get('/before-own', { config: { sluicegate: { limit: 1 } } }, ok)
      const registered = app.register(rateLimitPlugin, limited(2))
      if (awaited) await registered
      app.get('/after', ok)
      app.get('/after-own', { config: { sluicegate: { limit: 1 } } }, ok)
      app.register(async (child) => child.get('/child', ok))
      await app.ready()
      assert.deepEqual(await statuses(app, 1, '/before'), [200])
      assert.deepEqual(await statuses(app, 2, '/after'), [200, 429])
      assert.deepEqual(await statuses(app, 1, '/child'), [429])
      assert.deepEqual(await statuses(app, 2, '/before-own'), [200, 429])
      assert.deepEqual(await statuses(app, 2, '/after-own'), [200, 429])
    })
  }

  test(`F04 ${framework}: a child registration covers the child alone`, async (t) => {
    const app = open(t)
    app.get('/root', ok)
    app.register(async (child) => {
      await child.register(rateLimitPlugin, limited(1))
      child.get('/child', ok)
      child.register(async (grandchild) => grandchild.get('/grandchild', ok))
    })
    app.register(async (sibling) => sibling.get('/sibling', ok))
    assert.deepEqual(await statuses(app, 2, '/child'), [200, 429])
    assert.deepEqual(await statuses(app, 1, '/grandchild'), [429])
    assert.deepEqual(await statuses(app, 3, '/root'), [200, 200, 200])
    assert.deepEqual(await statuses(app, 3, '/sibling'), [200, 200, 200])
  })

  test(`F05 ${framework}: unknown paths are limited under the default rule, all in one bucket`, async (t) => {
    for (const custom of [false, true]) {
      const app = open(t)
      await app.register(rateLimitPlugin, limited(5))
      if (custom) app.setNotFoundHandler(async (req, reply) => reply.code(404).send('nothing here'))
      const seen = []
      for (let n = 0; n < 10; n++) seen.push((await app.inject(`/nope-${n}`)).statusCode)
      assert.deepEqual(seen, [404, 404, 404, 404, 404, 429, 429, 429, 429, 429])
    }
  })

  test(`F05 ${framework}: app.sluicegate() limits a not-found handler of another scope`, async (t) => {
    const app = open(t)
    app.register(async (child) => {
      await child.register(rateLimitPlugin, limited(2))
      app.setNotFoundHandler({ preHandler: child.sluicegate() }, async (req, reply) =>
        reply.code(404).send('none')
      )
    })
    assert.deepEqual(await statuses(app, 3, '/nope'), [404, 404, 429])
  })

  test(`F05 ${framework}: app.sluicegate() beside the plugin's own hook counts nothing twice`, async (t) => {
    const app = open(t)
    await app.register(rateLimitPlugin, limited(2))
    app.get('/', { preHandler: [app.sluicegate(), app.sluicegate()] }, ok)
    app.setNotFoundHandler({ preHandler: app.sluicegate() }, async (req, reply) =>
      reply.code(404).send('none')
    )
    assert.equal((await app.inject('/')).headers['x-ratelimit-remaining'], '1')
    assert.equal((await app.inject('/nope')).headers['x-ratelimit-remaining'], '0')
    assert.equal((await app.inject('/')).statusCode, 429)
  })

  test(`${framework}: app.sluicegate(options) is another limiter over the plugin's options`, async (t) => {
    const app = open(t)
    await app.register(rateLimitPlugin, limited(100))
    app.get('/a', { preHandler: app.sluicegate({ limit: 2 }) }, ok)
    app.get('/b', { preHandler: app.sluicegate({ limit: 1 }) }, ok)
    assert.deepEqual(await statuses(app, 3, '/a'), [200, 200, 429])
    assert.deepEqual(await statuses(app, 2, '/b'), [200, 429])
    assert.throws(() => app.sluicegate({ maxKeys: 3 }), {
      code: 'ERR_SLUICEGATE_UNKNOWN_OPTION',
      field: 'maxKeys'
    })
    await app.sluicegate.limiter.reset(await app.sluicegate.keyOf({ ip: '127.0.0.1' }))
    assert.deepEqual(await statuses(app, 3, '/a'), [200, 200, 429])
  })

  test(`F06 ${framework}: root and child registrations both apply, each counting once`, async (t) => {
    const app = open(t)
    await app.register(rateLimitPlugin, limited(100))
    app.get('/root', ok)
    app.register(async (child) => {
      await child.register(rateLimitPlugin, limited(5))
      child.get('/child', ok)
    })
    assert.deepEqual(await statuses(app, 6, '/child'), [200, 200, 200, 200, 200, 429])
    assert.equal((await app.inject('/root')).headers['x-ratelimit-remaining'], '93')
  })

  test(`F06 ${framework}: the same registration twice neither throws nor counts twice`, async (t) => {
    const clock = new ManualClock(0)
    for (const name of [undefined, `twice-${framework}`]) {
      const app = open(t)
      const options = limited(2, { name, clock })
      await app.register(rateLimitPlugin, options)
      await app.register(rateLimitPlugin, options)
      app.get('/', ok)
      assert.equal((await app.inject('/')).headers['x-ratelimit-remaining'], '1')
      assert.deepEqual(await statuses(app, 2, '/'), [200, 429])
    }
  })

  test(`${framework}: a route with false is not limited, one with a policy counts for itself`, async (t) => {
    const app = open(t)
    await app.register(rateLimitPlugin, limited(3))
    app.get('/free', { config: { sluicegate: false } }, ok)
    app.get('/strict', { config: { sluicegate: { limit: 1 } } }, ok)
    app.get('/', ok)
    const free = await app.inject('/free')
    assert.equal(free.headers['x-ratelimit-limit'], undefined)
    assert.deepEqual(await statuses(app, 2, '/strict'), [200, 429])
    assert.deepEqual(await statuses(app, 4, '/'), [200, 200, 200, 429])
    assert.deepEqual(await statuses(app, 2, '/free'), [200, 200])
  })

  test(`${framework}: one config object for two routes is two limits`, async (t) => {
    const app = open(t)
    await app.register(rateLimitPlugin, limited(100))
    const config = { sluicegate: { limit: 1 } }
    app.get('/a', { config }, ok)
    app.get('/b', { config }, ok)
    app.post('/a', { config }, ok)
    assert.deepEqual(await statuses(app, 2, '/a'), [200, 429])
    assert.deepEqual(await statuses(app, 2, '/b'), [200, 429])
    assert.deepEqual(await statuses(app, 2, { url: '/a', method: 'POST' }), [200, 429])
  })

  test(`${framework}: a route that only says how requests are treated counts where the plugin counts`, async (t) => {
    const app = open(t)
    await app.register(rateLimitPlugin, limited(5))
    app.get('/', ok)
    app.get('/dear', { config: { sluicegate: { cost: 3 } } }, ok)
    app.get('/quiet', { config: { sluicegate: { headers: false } } }, ok)
    app.get('/soft', { config: { sluicegate: { mode: 'shadow' } } }, ok)
    assert.equal((await app.inject('/dear')).headers['x-ratelimit-remaining'], '2')
    assert.equal((await app.inject('/quiet')).headers['x-ratelimit-remaining'], undefined)
    assert.equal((await app.inject('/')).headers['x-ratelimit-remaining'], '0')
    assert.deepEqual(await statuses(app, 1, '/dear'), [429])
    assert.deepEqual(await statuses(app, 1, '/quiet'), [429])
    assert.deepEqual(await statuses(app, 1, '/soft'), [200])
  })

  test(`${framework}: bad options of a route stop the app at its start`, async (t) => {
    const bad = [
      [{ limit: -1 }, 'ERR_SLUICEGATE_INVALID_LIMIT'],
      [{ tenantId: 'x' }, 'ERR_SLUICEGATE_UNKNOWN_OPTION'],
      [{ cost: -1 }, 'ERR_SLUICEGATE_INVALID_COST'],
      [{ cost: '1' }, 'ERR_SLUICEGATE_INVALID_COST'],
      [{ mode: 'off' }, 'ERR_SLUICEGATE_INVALID_MODE'],
      [{ window: '1 minute' }, 'ERR_SLUICEGATE_INVALID_WINDOW'],
      [{ limit: 1, window: '' }, 'ERR_SLUICEGATE_INVALID_WINDOW'],
      [[], 'ERR_SLUICEGATE_INVALID_OPTIONS'],
      [true, 'ERR_SLUICEGATE_INVALID_OPTIONS']
    ]
    for (const [sluicegate, code] of bad) {
      const app = open(t)
      await app.register(rateLimitPlugin, limited(5))
      assert.throws(() => app.get('/', { config: { sluicegate } }, ok), { code })
    }
  })

  test(`F07 ${framework}: a window as text means for a route what it means for the plugin`, async (t) => {
    for (const [window, seconds] of [
      ['60s', '60'],
      ['1m', '60'],
      ['1h', '3600'],
      [60_000, '60']
    ]) {
      const app = open(t)
      await app.register(rateLimitPlugin, limited(1, { window, reset: 'delta' }))
      app.get('/', ok)
      app.get('/own', { config: { sluicegate: { limit: 1, window } } }, ok)
      for (const url of ['/', '/own']) {
        assert.equal((await app.inject(url)).headers['x-ratelimit-reset'], seconds, `${window} ${url}`)
        const denied = await app.inject(url)
        assert.equal(denied.statusCode, 429)
        assert.equal(denied.headers['retry-after'], seconds, `${window} ${url}`)
      }
    }
  })

  test(`F02 ${framework}: a later hook sees the user; the default one counts failed logins`, async (t) => {
    const authenticate = async (req, reply) => {
      const user = req.headers['x-user']
      if (user === undefined) return reply.code(401).send('who?')
      req.user = { id: user }
    }
    const app = open(t)
    app.decorateRequest('user', null)
    app.addHook('preValidation', authenticate)
    await app.register(
      rateLimitPlugin,
      limited(3, { hook: 'preHandler', keyExtractor: (req) => req.user.id })
    )
    app.get('/', ok)
    const as = (user) => ({ url: '/', headers: { 'x-user': user } })
    assert.deepEqual(await statuses(app, 4, as('a')), [200, 200, 200, 429])
    assert.deepEqual(await statuses(app, 4, as('b')), [200, 200, 200, 429])
    assert.deepEqual(await statuses(app, 4, '/'), [401, 401, 401, 401])

    const early = open(t)
    early.addHook('preValidation', authenticate)
    await early.register(rateLimitPlugin, limited(3))
    early.get('/', ok)
    assert.deepEqual(await statuses(early, 5, '/'), [401, 401, 401, 429, 429])
  })

  for (const hook of ['onRequest', 'preParsing', 'preValidation', 'preHandler']) {
    test(`F02 ${framework}: hook '${hook}' limits, and bodies arrive`, async (t) => {
      const app = open(t)
      await app.register(rateLimitPlugin, limited(1, { hook }))
      app.post('/', async (req) => req.body)
      const post = { url: '/', method: 'POST', payload: { a: 1 } }
      const first = await app.inject(post)
      assert.deepEqual(first.json(), { a: 1 })
      assert.equal((await app.inject(post)).statusCode, 429)
    })
  }

  test(`${framework}: closing the app closes the limiter`, async (t) => {
    const app = open(t)
    await app.register(rateLimitPlugin, limited(0))
    assert.equal((await app.inject('/')).statusCode, 429)
    const { limiter } = app.sluicegate
    await app.close()
    await assert.rejects(limiter.check('a'), { code: 'ERR_SLUICEGATE_CLOSED' })
  })

  test(`${framework}: the plugin is found under all the names that plugins are imported by`, () => {
    assert.equal(rateLimitPlugin.default, rateLimitPlugin)
    assert.equal(rateLimitPlugin.rateLimitPlugin, rateLimitPlugin)
  })
}
