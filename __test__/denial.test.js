// What a client is told that may not pass, in all frameworks and by every value of onDenied (F08, F01).
'use strict'

const assert = require('node:assert/strict')
const { test } = require('node:test')

const { DeniedError, ManualClock } = require('..')
const { EXPRESS, FASTIFY, FRAMEWORKS, memoryLogger, serve, times } = require('./support/server.js')

const CLOCK = 1_728_000_000_000
const ALGORITHMS = [
  'fixed_window',
  'sliding_window_counter',
  'sliding_window_log',
  'token_bucket',
  'leaky_bucket'
]

function fixed(more) {
  return { limit: 2, window: '10s', algorithm: 'fixed_window', clock: new ManualClock(CLOCK), ...more }
}

for (const framework of FRAMEWORKS) {
  test(`${framework}: the request after the last unit gets a 429 with all headers and a problem document`, async (t) => {
    const app = await serve(t, framework, fixed())
    const first = await app.get('/a')
    assert.equal(first.status, 200)
    assert.equal(first.headers['x-ratelimit-limit'], '2')
    assert.equal(first.headers['x-ratelimit-remaining'], '1')
    assert.equal(first.headers['x-ratelimit-reset'], '1728000010')
    assert.equal(first.headers['retry-after'], undefined)
    assert.equal(first.headers['cache-control'], undefined)
    assert.equal(first.body.rateLimit.remaining, 1)
    await app.get('/b')
    const denied = await app.get('/c')
    assert.equal(denied.status, 429)
    assert.equal(denied.headers['content-type'], 'application/problem+json')
    assert.equal(denied.headers['x-ratelimit-limit'], '2')
    assert.equal(denied.headers['x-ratelimit-remaining'], '0')
    assert.equal(denied.headers['x-ratelimit-reset'], '1728000010')
    assert.equal(denied.headers['retry-after'], '10')
    assert.equal(denied.headers['cache-control'], 'no-store')
    assert.deepEqual(denied.body, {
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Quota exceeded',
      status: 429,
      detail: 'The quota is used up; try again in 10 seconds.',
      'violated-policies': ['2-per-10s']
    })
    assert.equal(app.handled.count, 2)
  })

  test(`${framework}: the quota comes back with the window`, async (t) => {
    const clock = new ManualClock(CLOCK)
    const app = await serve(t, framework, fixed({ clock }))
    assert.deepEqual(await app.statuses(3), [200, 200, 429])
    clock.advance(9_999.999)
    assert.equal((await app.get()).status, 429)
    clock.advance(0.001)
    assert.equal((await app.get()).status, 200)
  })

  test(`${framework}: a cost above the whole quota is denied without Retry-After`, async (t) => {
    const app = await serve(t, framework, fixed({ cost: 3 }))
    const denied = await app.get()
    assert.equal(denied.status, 429)
    assert.equal(denied.headers['retry-after'], undefined)
    assert.equal(denied.body.detail, 'The request costs more than the whole quota.')
  })

  for (const algorithm of ALGORITHMS) {
    test(`A06 ${framework}: a limit of 0 denies all by ${algorithm}, promises nothing, and shows numbers`, async (t) => {
      const app = await serve(t, framework, fixed({ algorithm, limit: 0 }))
      for (let n = 0; n < 2; n++) {
        const denied = await app.get()
        assert.equal(denied.status, 429)
        assert.equal(denied.headers['x-ratelimit-limit'], '0')
        assert.equal(denied.headers['x-ratelimit-remaining'], '0')
        assert.equal(denied.headers['x-ratelimit-reset'], String(CLOCK / 1000))
        assert.equal(denied.headers['retry-after'], undefined)
      }
      assert.equal(app.handled.count, 0)
    })
  }

  test(`${framework}: a HEAD that is denied has the headers and no body`, async (t) => {
    const app = await serve(t, framework, fixed({ limit: 0 }))
    const denied = await app.get('/', {}, { method: 'HEAD' })
    assert.equal(denied.status, 429)
    assert.equal(denied.headers['x-ratelimit-limit'], '0')
    assert.equal(denied.text, '')
  })

  test(`F08 ${framework}: onDenied 'throw' gives the app's error handler an Error with statusCode 429, and the headers stay`, async (t) => {
    const seen = []
    const app = await serve(t, framework, fixed({ limit: 0, onDenied: 'throw' }), {
      routes(app) {
        if (FASTIFY.includes(framework)) {
          app.setErrorHandler((error, req, reply) => {
            seen.push(error)
            reply.code(error.statusCode ?? 500).send({ m: error.message })
          })
        } else {
          app.use((error, req, res, next) => {
            seen.push(error)
            res.status(error.statusCode ?? 500).json({ m: error.message })
            void next
          })
        }
      }
    })
    const denied = await app.get()
    assert.equal(denied.status, 429)
    assert.equal(denied.headers['x-ratelimit-limit'], '0')
    assert.equal(denied.headers['cache-control'], 'no-store')
    assert.equal(denied.body.m, 'The quota is zero.')
    assert.equal(app.handled.count, 0)
    const [error] = seen
    assert.ok(error instanceof DeniedError && error instanceof Error)
    assert.equal(error.code, 'ERR_SLUICEGATE_DENIED')
    assert.equal(error.decision.outcome, 'denied')
    assert.match(error.stack, /DeniedError/)
  })

  test(`F08 ${framework}: onDenied 'throw' without an error handler is a 429 with its headers`, async (t) => {
    const app = await serve(t, framework, fixed({ limit: 1, onDenied: 'throw' }), { app: { env: 'test' } })
    await app.get()
    const denied = await app.get()
    assert.equal(denied.status, 429)
    assert.equal(denied.headers['retry-after'], '10')
    assert.equal(denied.headers['x-ratelimit-limit'], '1')
    assert.equal(denied.headers['cache-control'], 'no-store')
  })

  test(`${framework}: an onDenied function answers with the status and headers set already`, async (t) => {
    const app = await serve(
      t,
      framework,
      fixed({
        limit: 0,
        onDenied: (req, res, decision) => void res.send({ wait: decision.retryAfterMs, path: req.url })
      })
    )
    const denied = await app.get('/x')
    assert.equal(denied.status, 429)
    assert.deepEqual(denied.body, { wait: null, path: '/x' })
    assert.equal(denied.headers['x-ratelimit-limit'], '0')
  })

  const broken = {
    throws: () => {
      throw new Error('mine')
    },
    rejects: async () => {
      throw new Error('mine')
    },
    'rejects with undefined': () => Promise.reject(),
    'rejects with a symbol': () => Promise.reject(Symbol('mine')),
    'is async and sends nothing': async () => {}
  }
  for (const [how, onDenied] of Object.entries(broken)) {
    test(`F08 ${framework}: an onDenied that ${how} still makes a 429`, async (t) => {
      const logger = memoryLogger()
      const app = await serve(t, framework, fixed({ limit: 0, onDenied, logger }))
      const denied = await app.get()
      assert.equal(denied.status, 429)
      assert.equal(denied.headers['content-type'], 'application/problem+json')
      assert.equal(denied.headers['x-ratelimit-limit'], '0')
      assert.equal(app.handled.count, 0)
      assert.equal(logger.of('error').length, how.includes('sends') ? 0 : 1)
    })
  }
}

for (const framework of FASTIFY) {
  test(`F08 ${framework}: what an onDenied function returns is the body`, async (t) => {
    for (const onDenied of [() => ({ slow: 'down' }), async () => ({ slow: 'down' })]) {
      const app = await serve(t, framework, fixed({ limit: 0, onDenied }))
      const denied = await app.get()
      assert.equal(denied.status, 429)
      assert.deepEqual(denied.body, { slow: 'down' })
    }
  })

  test(`${framework}: an async onDenied that returns the reply has answered`, async (t) => {
    const onDenied = async (req, reply) => reply.code(420).send({ calm: true })
    const app = await serve(t, framework, fixed({ limit: 0, onDenied }), {
      before: (app) => app.addHook('onSend', async () => new Promise((resolve) => setImmediate(resolve)))
    })
    const denied = await app.get()
    assert.equal(denied.status, 420)
    assert.deepEqual(denied.body, { calm: true })
  })

  test(`F01 ${framework}: beside other async hooks the handler never starts for a denied request`, async (t) => {
    const app = await serve(t, framework, fixed({ limit: 1, keyExtractor: async () => 'one' }), {
      before: (app) => app.addHook('onRequest', async () => new Promise((resolve) => setImmediate(resolve)))
    })
    const post = { method: 'POST', body: 'x'.repeat(100_000) }
    const headers = { 'content-type': 'text/plain' }
    assert.deepEqual(await app.statuses(1, '/', headers, post), [200])
    const denied = await app.get('/', headers, post)
    assert.equal(denied.status, 429)
    assert.equal(app.handled.count, 1)
  })
}

for (const framework of EXPRESS) {
  test(`${framework}: an error of a later handler is not taken for the limiter's`, async (t) => {
    const errors = []
    const app = await serve(t, framework, fixed({ limit: 1 }), {
      routes(app) {
        app.get('/boom', () => {
          throw new Error('boom')
        })
        app.use((error, req, res, next) => {
          errors.push(error.message)
          res.status(500).end()
          void next
        })
      }
    })
    assert.deepEqual(await app.statuses(2, '/boom'), [500, 429])
    assert.deepEqual(errors, times(1, 'boom'))
  })
}

for (const framework of FRAMEWORKS) {
  test(`${framework}: a request that was answered while its key was awaited is denied in silence`, async (t) => {
    const rejections = []
    const note = (error) => rejections.push(error)
    process.on('unhandledRejection', note)
    t.after(() => process.off('unhandledRejection', note))
    for (const onDenied of [undefined, 'throw', () => assert.fail('there is nobody to answer')]) {
      let answered
      const keyExtractor = () => new Promise((resolve) => (answered = () => resolve('a')))
      const app = await serve(t, framework, fixed({ limit: 0, keyExtractor, onDenied }), {
        before(app) {
          const early = (req, res, next) => {
            setImmediate(() => (res.code?.(503) ?? res.status(503)).send('too late'))
            next()
          }
          if (FASTIFY.includes(framework)) app.addHook('onRequest', early)
          else app.use(early)
        }
      })
      const { status, text } = await app.get()
      answered()
      await new Promise(setImmediate)
      assert.deepEqual([status, text, app.handled.count], [503, 'too late', 0])
      assert.equal(app.limiter.stats().denied, 1)
    }
    assert.deepEqual(rejections, [])
  })

  test(`${framework}: whatever the options' functions throw, the request does not pass`, async (t) => {
    const fallible = [
      (thrown) => ({
        skip: () => {
          throw thrown
        }
      }),
      (thrown) => ({
        cost: () => {
          throw thrown
        }
      }),
      (thrown) => ({
        keyExtractor: () => {
          throw thrown
        }
      }),
      (thrown) => ({
        keyExtractor: async () => {
          throw thrown
        }
      })
    ]
    for (const options of fallible) {
      for (const thrown of [undefined, null, '', 0, 'route', 'router', new Error('expected')]) {
        const app = await serve(t, framework, fixed(options(thrown)), {
          routes(app) {
            if (EXPRESS.includes(framework))
              // oxlint-disable-next-line no-unused-vars -- Express knows error handlers by their four parameters
              app.use((error, req, res, next) => void res.status(500).end())
          }
        })
        assert.equal((await app.get()).status, 500, `${options} ${thrown}`)
        assert.equal(app.handled.count, 0)
      }
    }
  })
}
