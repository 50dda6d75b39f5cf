// The limiter for jobs, sockets, GraphQL, anything that has a key: createRateLimiter. The middleware exposes one as well.
'use strict'

const { inspect } = require('node:util')

const { Core } = require('./core.js')
const { unlimited } = require('./decision.js')
const { closedError, found, typeError } = require('./errors.js')

/**
 * @param {import('..').LimiterOptions} options
 * @returns {RateLimiter}
 */
function createRateLimiter(options) {
  return new RateLimiter(Core.open(options, 'limiter'))
}

/** Every method but `checkSync` and `stats` answers with a promise, for a store need not be in this process. */
class RateLimiter {
  #core
  #closed = false

  /** @param {Core} core */
  constructor(core) {
    this.#core = core
  }

  check(key, options) {
    try {
      return Promise.resolve(this.checkSync(key, options))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  checkSync(key, options) {
    const core = this.#core
    if (options !== undefined || core.hasRules) return this.#ask(core.checkKey, key, options)
    // Arguments that are not there cost nothing: 60 of 340 ns (benchmark/memory.mjs).
    core.checkPlain(key)
    return core.decision(core.shadow)
  }

  async peek(key, options) {
    return this.#ask(this.#core.peekKey, key, options)
  }

  async refund(key, cost = 1, options = undefined) {
    const rule = this.#ruleOf(options)
    if (rule >= 0) this.#core.native.refundKey(rule, key, cost)
  }

  async reset(key) {
    this.#open().resetKey(key)
  }

  async block(key, ms, label) {
    if (label !== undefined && typeof label !== 'string') {
      throw typeError('INVALID_OPTIONS', 'label', `must be text, not ${found(label)}`)
    }
    this.#open().blockKey(key, ms)
  }

  async unblock(key) {
    return this.#open().unblockKey(key)
  }

  async keyOf(req) {
    this.#open()
    if (typeof req !== 'object' || req === null) {
      throw typeError('INVALID_KEY', 'req', `must be a request, not ${found(req)}`)
    }
    return this.#core.source.keyOf(req, this.#core.jwks)
  }

  stats() {
    return { ...this.#core.native.stats(), misses: {}, batches: 0 }
  }

  async close() {
    if (this.#closed) return
    this.#closed = true
    this.#core.native.close()
  }

  /** What may be shown of a limiter: no secret, no key and nothing of its clients. */
  toJSON() {
    const { tenantId = 'default', name, keyExtractor = 'ip', mode = 'enforce' } = this.#core.settings.native
    const extractor = typeof keyExtractor === 'function' ? 'custom' : keyExtractor
    return { tenantId, name, keyExtractor: extractor, mode, closed: this.#closed }
  }

  [inspect.custom](depth, options) {
    return `RateLimiter ${inspect(this.toJSON(), options)}`
  }

  #open() {
    if (this.#closed) throw closedError()
    return this.#core.native
  }

  #ask(native, key, options) {
    const core = this.#core
    let rule
    do {
      rule = this.#ruleOf(options)
      if (rule < 0) return unlimited()
      // Other rules may have come into force since: then the answer is STALE_RULE, and nothing was decided; a decision has no flags.
    } while (native(rule, key, options?.cost, options?.limit) !== undefined)
    return core.decision(core.shadow)
  }

  /** Without rules there is one, with index 0. */
  #ruleOf(options) {
    if (options !== undefined && (typeof options !== 'object' || options === null)) {
      throw typeError('INVALID_OPTIONS', 'options', `must be an object, not ${found(options)}`)
    }
    this.#open()
    if (!this.#core.hasRules) return 0
    for (const name of ['method', 'path']) {
      const value = options?.[name]
      if (value === undefined || value === null || typeof value === 'string') continue
      throw typeError('INVALID_OPTIONS', name, `must be text, not ${found(value)}`)
    }
    return this.#core.match(options?.method ?? '', undefined, options?.path ?? '', false)
  }
}

module.exports = { RateLimiter, createRateLimiter }
