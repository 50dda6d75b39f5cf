// The Fastify plugin: a hook in front of every route of its scope, 404s included, and routes with options of their own.
'use strict'

const fastifyPlugin = require('fastify-plugin')

const { Core } = require('./core.js')
const { CHECKED_BY, Guard } = require('./guard.js')
const { RateLimiter } = require('./limiter.js')
const { readOptions } = require('./options.js')
const { MEDIA_TYPE } = require('./problem.js')
const { RouteGuards } = require('./route.js')

/**
 * @param {import('fastify').FastifyInstance} fastify
 * @param {import('..').FastifyOptions} options
 */
async function plugin(fastify, options) {
  const core = Core.open(options, 'fastify', fastify.log)
  const root = new Guard(core, FASTIFY)
  const routes = new RouteGuards(core, root, FASTIFY)
  // Reading a route's options costs Fastify 4 two microseconds a request, so it is done only where some may be there:
  // onRoute tells of the routes to come, and of those that came before there is no telling.
  let readsRoutes = fastify.printRoutes().trim() !== '(empty tree)'

  fastify.addHook('onRoute', (route) => {
    const own = route.config?.sluicegate
    if (own === undefined) return
    readsRoutes = true
    // Now, so that a bad option stops the app instead of its first request.
    routes.guardOf(own, route.url, route.method)
  })

  function check(request, reply, next) {
    const guard = readsRoutes ? guardOf(request) : root
    if (guard === undefined) next()
    else guard.check(request, reply, next)
  }

  function guardOf(request) {
    const config = configOf(request)
    const own = config?.sluicegate
    return own === undefined ? root : routes.guardOf(own, config.url, config.method)
  }

  if (!fastify.hasRequestDecorator('rateLimit')) fastify.decorateRequest('rateLimit', undefined)
  if (!fastify.hasRequestDecorator(CHECKED_BY)) fastify.decorateRequest(CHECKED_BY, undefined)
  const { hook } = core.settings
  fastify.addHook(
    hook,
    hook === 'preParsing' ? (request, reply, payload, next) => check(request, reply, next) : check
  )

  const limiter = new RateLimiter(core)
  decorate(fastify, handlerFactory(core, root, limiter))
  fastify.addHook('onClose', () => limiter.close())
  lookAtProxyTrust(fastify, core)
}

/** `app.sluicegate()`: the same check for places that no hook reaches, or with options of its own. */
function handlerFactory(core, root, limiter) {
  let made = 0

  function sluicegate(options) {
    if (options === undefined) return (request, reply, next) => root.check(request, reply, next)
    readOptions(options, 'route')
    made += 1
    const guard = new Guard(core.derive(options, `handler ${made}`), FASTIFY)
    return (request, reply, next) => guard.check(request, reply, next)
  }
  sluicegate.limiter = limiter
  sluicegate.keyOf = (request) => limiter.keyOf(request)
  return sluicegate
}

/** A second registration in one scope is the one that the scope's code sees; both limit. */
function decorate(fastify, sluicegate) {
  if (Object.hasOwn(fastify, 'sluicegate')) fastify.sluicegate = sluicegate
  else fastify.decorate('sluicegate', sluicegate)
}

/** Fastify does not show this option; without it the warning is all that is missed. */
function lookAtProxyTrust(fastify, core) {
  if (!core.native.readsAddress) return
  const trust = optionsOf(fastify)?.trustProxy
  if (trust === true) {
    core.logger.once(
      'TRUST_PROXY',
      'trustProxy is true: any client can choose its own address with X-Forwarded-For, and so its own limit. ' +
        'Name the addresses of the proxies instead'
    )
  } else if (typeof trust === 'number' && ignoresHopCounts(fastify.version)) {
    core.logger.once(
      'NUMERIC_TRUST_PROXY',
      `trustProxy is ${trust}, and Fastify ${fastify.version} ignores a number of hops: all clients behind the proxy ` +
        'count as one. Name the addresses of the proxies instead'
    )
  }
}

function optionsOf(fastify) {
  for (let owner = fastify; owner !== null; owner = Object.getPrototypeOf(owner)) {
    const key = Object.getOwnPropertySymbols(owner).find((symbol) => symbol.description === 'fastify.options')
    if (key !== undefined) return owner[key]
  }
  return undefined
}

/** Since 5.12.1 (GHSA-3m5p-2c4r-xxw2). */
function ignoresHopCounts(version) {
  const [major, minor, patch] = version.split('.').map((part) => Number.parseInt(part, 10))
  return major > 5 || (major === 5 && (minor > 12 || (minor === 12 && patch >= 1)))
}

/** Before 4.10 the route's options are found in the context. */
function configOf(request) {
  return (request.routeOptions ?? request.context).config
}

/** Whether `/login;a` is /login to the router: in Fastify 4 unless the app says no, in 5 only if it says so. */
function endsPathsAtSemicolons(fastify) {
  const options = optionsOf(fastify)
  const said = options?.routerOptions?.useSemicolonDelimiter ?? options?.useSemicolonDelimiter
  return said ?? fastify.version.startsWith('4.')
}

/** @type {import('./guard.js').Framework} */
const FASTIFY = {
  method: (request) => request.method,

  pattern: (request) => configOf(request)?.url,

  hasOwnPatterns: true,

  path(request) {
    let { url } = request
    // As the router of Fastify 4 does, whatever stands in the host: `http://a?/login` is /login there.
    if (!url.startsWith('/')) url = url.replace(/^https?:\/\/.*?\//, '/')
    return url.includes(';') && endsPathsAtSemicolons(request.server) ? url.slice(0, url.indexOf(';')) : url
  },

  set(reply, name, value) {
    reply.header(name, value)
  },

  remove(reply, name) {
    reply.removeHeader(name)
  },

  status(reply, status) {
    reply.code(status)
  },

  send(reply, status, problem) {
    reply.code(status).header('Content-Type', MEDIA_TYPE).send(problem)
  },

  sendValue(reply, value) {
    if (value !== reply && !FASTIFY.answered(reply)) reply.send(value)
    return true
  },

  answered: (reply) => reply.sent || reply.raw.headersSent,

  raw: (reply) => reply.raw
}

const rateLimitPlugin = fastifyPlugin(plugin, { fastify: '4.x || 5.x', name: 'sluicegate' })
rateLimitPlugin.default = rateLimitPlugin
rateLimitPlugin.rateLimitPlugin = rateLimitPlugin

module.exports = { rateLimitPlugin }
