// Real servers of all four frameworks on real sockets, behind one face, and a client that hides nothing.
'use strict'

const http = require('node:http')

const { expressRateLimit, rateLimitPlugin } = require('../..')

const FASTIFY = ['fastify', 'fastify4']
const EXPRESS = ['express', 'express4']
const FRAMEWORKS = [...FASTIFY, ...EXPRESS]

/** What the server's handler answers unless a test says otherwise. */
function answer(req) {
  return { path: req.originalUrl ?? req.url, rateLimit: req.rateLimit ?? null }
}

/**
 * A server with a limiter in front of everything.
 * @param {import('node:test').TestContext} t closes it
 * @param {string} framework
 * @param {object} options of the limiter
 * @param {{ app?: object, handle?: (req: any, res: any) => unknown, before?: (app: any) => unknown, routes?: (app: any) => unknown, listen?: object, methods?: string[] }} [how]
 */
async function serve(t, framework, options, how = {}) {
  const handled = { count: 0 }
  if (framework.startsWith('fastify')) {
    const app = require(framework)({ forceCloseConnections: true, ...how.app })
    await how.before?.(app)
    await app.register(rateLimitPlugin, options)
    await how.routes?.(app)
    const handler = async (req, reply) => {
      handled.count++
      return (await how.handle?.(req, reply)) ?? answer(req)
    }
    if (how.methods === undefined) app.all('*', handler)
    else app.route({ method: how.methods, url: '*', handler })
    await app.listen(how.listen ?? { port: 0, host: '127.0.0.1' })
    t.after(() => app.close())
    return client(app.server, { app, handled, limiter: app.sluicegate.limiter, keyOf: app.sluicegate.keyOf })
  }
  const app = require(framework)()
  for (const [name, value] of Object.entries(how.app ?? {})) app.set(name, value)
  await how.before?.(app)
  const middleware = expressRateLimit(options)
  app.use(middleware)
  await how.routes?.(app)
  app.use(async (req, res) => {
    handled.count++
    const value = await how.handle?.(req, res)
    if (!res.headersSent) res.json(value ?? answer(req))
  })
  const server = app.listen(how.listen ?? { port: 0, host: '127.0.0.1' })
  await new Promise((resolve) => server.once('listening', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
    return middleware.limiter.close()
  })
  return client(server, { app, handled, limiter: middleware.limiter, keyOf: middleware.keyOf })
}

function client(server, more) {
  const address = server.address()
  const where =
    typeof address === 'string' ? { socketPath: address } : { host: '127.0.0.1', port: address.port }
  const get = (path = '/', headers = {}, options = {}) => request({ ...where, path, headers, ...options })
  const statuses = async (count, path, headers, options) => {
    const seen = []
    for (let index = 0; index < count; index++) seen.push((await get(path, headers, options)).status)
    return seen
  }
  return { server, ...where, get, statuses, ...more }
}

/** One request on a connection of its own. */
function request({ body, ...options }) {
  return new Promise((resolve, reject) => {
    const req = http.request({ agent: false, ...options }, (res) => {
      const chunks = []
      res.on('data', (chunk) => chunks.push(chunk))
      res.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const isJson = /json/.test(res.headers['content-type'] ?? '')
        resolve({
          status: res.statusCode,
          headers: res.headers,
          rawHeaders: res.rawHeaders,
          text,
          body: isJson && text !== '' ? JSON.parse(text) : undefined
        })
      })
      res.on('error', reject)
    })
    req.on('error', reject)
    req.end(body)
  })
}

/** A logger that remembers. */
function memoryLogger() {
  const lines = []
  const write = (level) => (message) => lines.push({ level, message: String(message) })
  return {
    lines,
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    of: (level) => lines.filter((line) => line.level === level).map((line) => line.message)
  }
}

/** `count` times a value. */
function times(count, value) {
  return Array.from({ length: count }, () => value)
}

module.exports = { EXPRESS, FASTIFY, FRAMEWORKS, memoryLogger, request, serve, times }
