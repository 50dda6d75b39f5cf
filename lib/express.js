// Middleware for Express 4 and 5, and for anything that calls (req, res, next): Connect, node:http by hand.
'use strict'

const { Core } = require('./core.js')
const { Guard } = require('./guard.js')
const { RateLimiter } = require('./limiter.js')
const { MEDIA_TYPE } = require('./problem.js')

/**
 * @param {import('..').ExpressOptions} options
 * @returns {import('..').ExpressMiddleware}
 */
function expressRateLimit(options) {
  const core = Core.open(options, 'express')
  const guard = new Guard(core, EXPRESS)
  let looked = false

  function middleware(req, res, next) {
    if (!looked) {
      looked = true
      lookAtProxyTrust(req, core)
    }
    guard.check(req, res, next)
  }
  middleware.limiter = new RateLimiter(core)
  middleware.keyOf = (req) => middleware.limiter.keyOf(req)
  return middleware
}

/** The app is known only once a request has come. */
function lookAtProxyTrust(req, core) {
  if (core.native.readsAddress && req.app?.settings?.['trust proxy'] === true) {
    core.logger.once(
      'TRUST_PROXY',
      "'trust proxy' is true: any client can choose its own address with X-Forwarded-For, and so its own limit. " +
        'Name the proxies, or how many there are'
    )
  }
}

/**
 * The path that Express finds in a URL with a fragment or a host: it leaves such ones to Node's old parser, which takes
 * `\\` for `/` and skips `//user@host`.
 */
function asParsed(url) {
  const [path] = url.split(/[?#]/, 1)
  return path.replaceAll('\\', '/').replace(/^\/\/[^@/]+@[^@/]+/, '')
}

/** @type {import('./guard.js').Framework} */
const EXPRESS = {
  method: (req) => req.method,

  pattern(req) {
    const own = req.route?.path
    return typeof own === 'string' ? (req.baseUrl ?? '') + own : undefined
  },

  // A pattern has the base URL in it, which is the client's text.
  hasOwnPatterns: false,

  path(req) {
    // Express keeps the mount point apart; Connect and other routers leave only the original URL whole. So does Express
    // when a client asks for an absolute URL.
    const isSplit = typeof req.baseUrl === 'string' && req.url.startsWith('/')
    const path = isSplit ? req.baseUrl + req.url : (req.originalUrl ?? req.url)
    return isSplit && !path.includes('#') ? path : asParsed(path)
  },

  set(res, name, value) {
    res.setHeader(name, value)
  },

  remove(res, name) {
    res.removeHeader(name)
  },

  status(res, status) {
    res.statusCode = status
  },

  send(res, status, problem) {
    res.statusCode = status
    res.setHeader('Content-Type', MEDIA_TYPE)
    res.setHeader('Content-Length', problem.length)
    res.end(problem)
  },

  // An Express function sends for itself; what it returns is `res`, more often than not.
  sendValue: () => false,

  answered: (res) => res.headersSent || res.writableEnded,

  raw: (res) => res
}

module.exports = { expressRateLimit }
