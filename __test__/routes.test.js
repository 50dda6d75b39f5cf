// Rules of routes: whatever reaches one handler has one counter, however it is spelled or mounted (A24, F05, K24, K25).
'use strict'

const assert = require('node:assert/strict')
const { test } = require('node:test')

const { ManualClock, createRateLimiter, expressRateLimit, rateLimitPlugin } = require('..')
const { EXPRESS, FASTIFY, FRAMEWORKS, memoryLogger, request, serve } = require('./support/server.js')

function rules(routes, more) {
  const tenant = { default: { limit: 100, window: '1m' }, routes }
  return {
    rules: { tenants: { default: tenant } },
    clock: new ManualClock(0),
    logger: memoryLogger(),
    ...more
  }
}

const LOGIN = { match: { path: '/login' }, limit: 3, window: '1m' }

for (const framework of FRAMEWORKS) {
  const spellings = ['/login?x', '/login?x=1#y', '/log%69n', '/%6Cogin']
  if (EXPRESS.includes(framework)) spellings.push('/Login', '/login/', '/LOGIN/?a')

  test(`K24 ${framework}: no spelling of a path that reaches the handler gets around its rule`, async (t) => {
    const reached = []
    const app = await serve(t, framework, rules([LOGIN]), {
      routes: (app) =>
        app.get('/login', (req, res) => {
          reached.push(req.url)
          res.send('in')
        })
    })
    assert.deepEqual(await app.statuses(3, '/login'), [200, 200, 200])
    for (const spelling of spellings) assert.equal((await app.get(spelling)).status, 429, spelling)
    assert.equal(reached.length, 3)
    assert.equal((await app.get('/elsewhere')).status, 200)
  })

  test(`K24 ${framework}: HEAD comes under the rule of GET, and an absolute URL under that of its path`, async (t) => {
    const rule = { match: { method: 'GET', path: '/login' }, limit: 2, window: '1m' }
    const app = await serve(t, framework, rules([rule]))
    assert.equal((await app.get('/login')).status, 200)
    assert.equal((await app.get('/login', {}, { method: 'HEAD' })).status, 200)
    assert.equal((await app.get('/login')).status, 429)
    assert.equal((await app.get('/login', {}, { method: 'HEAD' })).status, 429)
    assert.equal((await app.get('http://somewhere/login')).status, 429)
    assert.equal((await app.get('/login', {}, { method: 'POST' })).status, 200)
  })

  test(`K24 ${framework}: a rule for one value of a parameter holds beside the rule for all`, async (t) => {
    const routes = [
      { match: { path: '/users/:id' }, limit: 5, window: '1m' },
      { match: { path: '/users/admin' }, limit: 1, window: '1m' }
    ]
    const app = await serve(t, framework, rules(routes), {
      routes: (app) => app.get('/users/:id', (req, res) => void res.send('user'))
    })
    assert.deepEqual(await app.statuses(2, '/users/1'), [200, 200])
    assert.deepEqual(await app.statuses(2, '/users/admin'), [200, 429])
    assert.deepEqual(await app.statuses(4, '/users/1%2F..'), [200, 200, 200, 429])
  })

  test(`A24 ${framework}: rules and limiters of one client count apart`, async (t) => {
    const routes = [
      { match: { path: '/login' }, limit: 5, window: '1m' },
      { match: { path: '/api' }, limit: 100, window: '1m' }
    ]
    const app = await serve(t, framework, rules(routes))
    for (let n = 0; n < 5; n++) assert.equal((await app.get('/api')).status, 200)
    assert.equal((await app.get('/login')).headers['x-ratelimit-remaining'], '4')
    assert.deepEqual(await app.statuses(5, '/login'), [200, 200, 200, 200, 429])
    assert.equal((await app.get('/api')).headers['x-ratelimit-remaining'], '94')

    // Two limiters with the same numbers in one app, as users mount them.
    const options = { limit: 2, window: '1m', clock: new ManualClock(0), logger: memoryLogger() }
    const two = await serve(t, framework, options, {
      before(app) {
        if (EXPRESS.includes(framework)) return app.use('/other', expressRateLimit({ ...options }))
        return app.register(async (scope) => {
          await scope.register(rateLimitPlugin, { ...options })
          scope.get('/other', async () => 'other')
        })
      }
    })
    assert.deepEqual(await two.statuses(3, '/'), [200, 200, 429])
    await two.limiter.reset('ip:127.0.0.1')
    assert.deepEqual(await two.statuses(3, '/other'), [200, 200, 429])
  })

  test(`F05 ${framework}: paths that no route has come under the default rule, in one bucket`, async (t) => {
    const options = rules([LOGIN])
    options.rules.tenants.default.default.limit = 5
    const where = FASTIFY.includes(framework) ? await bareFastify(t, options) : await bareExpress(t, options)
    const seen = []
    for (let n = 0; n < 10; n++) seen.push((await request({ ...where, path: `/nope-${n}` })).status)
    assert.deepEqual(seen, [404, 404, 404, 404, 404, 429, 429, 429, 429, 429])
    assert.equal((await request({ ...where, path: '/login' })).status, 200)
  })

  /** An app with one route and nothing that catches the rest. */
  async function bareFastify(t, options) {
    const app = require(framework)()
    t.after(() => app.close())
    await app.register(rateLimitPlugin, options)
    app.get('/login', async () => 'in')
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { host: '127.0.0.1', port: app.server.address().port }
  }

  async function bareExpress(t, options) {
    const app = require(framework)()
    app.use(expressRateLimit(options))
    app.get('/login', (req, res) => void res.send('in'))
    const server = app.listen({ port: 0, host: '127.0.0.1' })
    await new Promise((resolve) => server.once('listening', resolve))
    t.after(() => server.close())
    return { host: '127.0.0.1', port: server.address().port }
  }

  test(`K24 ${framework}: no odd URL that comes to a parameter as a value gets around the rule for that value`, async (t) => {
    const routes = [
      { match: { path: '/users/:id' }, limit: 100, window: '1m' },
      { match: { path: '/users/admin' }, limit: 1, window: '1m' }
    ]
    const users = (app) => app.get('/users/:id', (req, res) => void res.send(req.params.id))
    const odd = [
      '/users/admin;a',
      '/users\\admin#',
      '//a@b/users/admin#',
      'http://a?/users/admin',
      'http://a/users\\admin'
    ]
    const apps = [await serve(t, framework, rules(routes), { routes: users })]
    if (FASTIFY.includes(framework)) {
      const said = framework === 'fastify4'
      const options = { useSemicolonDelimiter: !said }
      const app = said ? options : { routerOptions: options }
      apps.push(await serve(t, framework, rules(routes), { routes: users, app }))
    }
    for (const app of apps) {
      assert.equal((await app.get('/users/admin')).status, 200)
      for (const url of odd) assert.notEqual((await app.get(url)).text, 'admin', url)
    }
  })

  test(`${framework}: where no rule is for a request, lists and blocks hold and nothing is counted`, async (t) => {
    const logger = memoryLogger()
    const tenant = { routes: [LOGIN, { match: { path: '/health' }, skip: true }], deny: ['203.0.113.0/24'] }
    const options = { rules: { tenants: { default: tenant } }, deny: ['198.51.100.7'], logger }
    const trust = FASTIFY.includes(framework) ? { trustProxy: 'loopback' } : { 'trust proxy': 'loopback' }
    const app = await serve(
      t,
      framework,
      { ...options, perAddress: { limit: 1, window: '1m' } },
      { app: trust }
    )
    const from = (ip, path) => app.get(path, { 'x-forwarded-for': ip })
    const free = [await from('192.0.2.1', '/a'), await from('192.0.2.1', '/a'), await from('192.0.2.1', '/b')]
    for (const { status, headers, body } of free) {
      assert.deepEqual([status, headers['x-ratelimit-limit'], body.rateLimit], [200, undefined, null])
    }
    assert.equal((await from('203.0.113.9', '/a')).status, 403)
    assert.equal((await from('198.51.100.7', '/a')).status, 403)
    assert.equal((await from('203.0.113.9', '/login')).status, 403)
    assert.equal((await from('203.0.113.9', '/health')).status, 200)
    await app.limiter.block('ip:192.0.2.1', 60_000)
    assert.equal((await from('192.0.2.1', '/a')).status, 403)
    const { allowed, denylisted, keys } = app.limiter.stats()
    assert.deepEqual({ allowed, denylisted, keys }, { allowed: 0, denylisted: 4, keys: 0 })
    assert.equal(logger.of('warn').filter((line) => /no default/.test(line)).length, 1)
  })

  test(`${framework}: rules have costs, skips and counters of their own`, async (t) => {
    const routes = [
      { match: { path: '/dear' }, limit: 10, window: '1m', cost: 5 },
      { match: { path: '/health' }, skip: true },
      {
        match: { path: '/many/*' },
        limits: [
          { limit: 2, window: '1s' },
          { limit: 3, window: '1h' }
        ]
      }
    ]
    const app = await serve(t, framework, rules(routes))
    assert.deepEqual(await app.statuses(3, '/dear'), [200, 200, 429])
    assert.deepEqual(await app.statuses(3, '/many/x'), [200, 200, 429])
    const health = await app.get('/health')
    assert.equal(health.headers['x-ratelimit-limit'], undefined)
    assert.equal(health.body.rateLimit, null)
  })
}

for (const framework of EXPRESS) {
  const express = require(framework)

  /** Mounts a limiter in three ways and asks for /api/v1/users four times. */
  const MOUNTS = {
    'on a path': (app, limiter) => app.use('/api', limiter),
    'in a nested router': (app, limiter) => {
      const outer = express.Router()
      const inner = express.Router()
      inner.use(limiter)
      inner.get('/users', (req, res) => void res.send('users'))
      outer.use('/v1', inner)
      app.use('/api', outer)
    },
    'as a handler of the route': (app, limiter) => {
      const router = express.Router()
      router.get('/v1/users', limiter, (req, res) => void res.send('users'))
      app.use('/api', router)
    },
    'in a mounted app': (app, limiter) => {
      const sub = express()
      sub.use(limiter)
      sub.get('/v1/users', (req, res) => void res.send('users'))
      app.use('/api', sub)
    }
  }
  for (const [how, mount] of Object.entries(MOUNTS)) {
    test(`K25 ${framework}: mounted ${how}, the limiter still sees the whole path`, async (t) => {
      const options = rules([{ match: { path: '/api/v1/users' }, limit: 3, window: '1m' }])
      const app = await serve(
        t,
        framework,
        { limit: 1000, window: '1m', clock: options.clock },
        {
          before: (app) => mount(app, expressRateLimit(options))
        }
      )
      assert.deepEqual(await app.statuses(4, '/api/v1/users'), [200, 200, 200, 429])
      assert.equal((await app.get('/API/V1/Users/')).status, 429)
      assert.equal((await app.get('http://somewhere/api/v1/users')).status, 429)
    })
  }

  test(`${framework}: one middleware mounted twice counts once`, async (t) => {
    const limiter = expressRateLimit({ limit: 2, window: '1m', clock: new ManualClock(0) })
    const app = await serve(
      t,
      framework,
      { limit: 1000, window: '1m' },
      {
        before: (app) => {
          app.use(limiter)
          app.use('/a', limiter)
        }
      }
    )
    assert.deepEqual(await app.statuses(3, '/a'), [200, 200, 429])
  })
}

for (const framework of FASTIFY) {
  test(`K24 ${framework}: with a lenient router, no spelling that reaches the handler gets around its rule`, async (t) => {
    const lenient = {
      caseSensitive: false,
      ignoreTrailingSlash: true,
      ignoreDuplicateSlashes: true,
      useSemicolonDelimiter: true
    }
    for (const own of [false, true]) {
      const reached = []
      const config = own ? { sluicegate: { limit: 3, window: '1m' } } : {}
      const app = await serve(t, framework, rules(own ? [] : [LOGIN]), {
        app: framework === 'fastify4' ? lenient : { routerOptions: lenient },
        routes: (app) =>
          app.get('/login', { config }, async (req) => {
            reached.push(req.url)
            return 'in'
          })
      })
      const spellings = ['/Login', '/login/', '//login', '/log%69n', '/login;x=1', '/login?x', '/LOGIN//;a?b']
      for (const spelling of ['/login', ...spellings.slice(0, 2)])
        assert.equal((await app.get(spelling)).status, 200, spelling)
      for (const spelling of spellings) assert.equal((await app.get(spelling)).status, 429, spelling)
      assert.equal(reached.length, 3)
    }
  })

  test(`K25 ${framework}: a prefix is part of the path`, async (t) => {
    const app = require(framework)()
    t.after(() => app.close())
    await app.register(
      rateLimitPlugin,
      rules([{ match: { path: '/api/users/:id' }, limit: 1, window: '1m' }])
    )
    app.register(async (scope) => scope.get('/users/:user', async () => 'user'), { prefix: '/api' })
    assert.equal((await app.inject('/api/users/1')).statusCode, 200)
    assert.equal((await app.inject('/api/users/2')).statusCode, 429)
  })
}

test('plain node:http takes the middleware, rules included', async (t) => {
  const http = require('node:http')
  const limiter = expressRateLimit(rules([{ match: { path: '/login' }, limit: 1, window: '1m' }]))
  const server = http.createServer((req, res) =>
    limiter(req, res, (error) => {
      res.statusCode = error ? 500 : 200
      res.end(String(req.rateLimit?.remaining))
    })
  )
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const ask = (path) => request({ host: '127.0.0.1', port: server.address().port, path })
  assert.equal((await ask('/login')).text, '0')
  const denied = await ask('/login?again')
  assert.equal(denied.status, 429)
  assert.equal(denied.headers['content-type'], 'application/problem+json')
  assert.equal((await ask('/other')).text, '99')
})

test('createRateLimiter takes rules by the method and path of a check', async () => {
  const limiter = createRateLimiter(
    rules([{ match: { method: 'POST', path: '/login' }, limit: 1, window: '1m' }])
  )
  const login = { method: 'POST', path: '/login' }
  assert.equal((await limiter.check('a', login)).allowed, true)
  assert.equal((await limiter.check('a', login)).allowed, false)
  assert.equal((await limiter.peek('a', login)).allowed, false)
  await limiter.refund('a', 1, login)
  assert.equal((await limiter.peek('a', login)).allowed, true)
  assert.equal((await limiter.check('a')).limit, 100)
})
