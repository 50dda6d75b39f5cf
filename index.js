// The public API; index.d.ts is its contract. Written so that cjs-module-lexer sees every name:
// `import { rateLimitPlugin } from 'sluicegate'` works in ESM.
'use strict'

const { ManualClock } = require('./lib/addon.js')
const { DeniedError } = require('./lib/errors.js')
const { expressRateLimit } = require('./lib/express.js')
const { rateLimitPlugin } = require('./lib/fastify.js')
const { RateLimiter, createRateLimiter } = require('./lib/limiter.js')

module.exports = {
  rateLimitPlugin,
  expressRateLimit,
  createRateLimiter,
  RateLimiter,
  DeniedError,
  ManualClock
}
