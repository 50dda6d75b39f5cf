// One native limiter together with what JavaScript alone knows of it: the user's functions, his logger, his keys.
// The generic limiter and the middleware both stand on it.
'use strict'

const cluster = require('node:cluster')

const { NativeLimiter, output } = require('./addon.js')
const { ALLOWED, COUNT, OUTCOME, RULE, readDecision } = require('./decision.js')
const { Jwks } = require('./jwks.js')
const { Logger } = require('./logger.js')
const { mergeRoute, readOptions } = require('./options.js')
const { RequestSource } = require('./request.js')

/** A pattern without parameters or wildcards, in Fastify's spelling. */
const LITERAL = /^[^:*(]*$/

let saidCluster = false

class Core {
  /** The names of the policies of the rule that decided last, which is mostly the one that decides next. */
  #rule = -1
  #names = []
  #matches = new Map()
  #version = 0

  /**
   * @param {object} native
   * @param {object} options as the user gave them
   * @param {import('./options.js').Settings} settings
   * @param {Logger} logger
   */
  constructor(native, options, settings, logger) {
    this.native = native
    const hot = native.hot()
    this.checkPlain = hot.checkPlain
    this.checkKey = hot.checkKey
    this.peekKey = hot.peekKey
    this.options = options
    this.settings = settings
    this.logger = logger
    this.shadow = native.shadow
    this.hasRules = native.readsRoute
    this.source = new RequestSource(native, hot, settings.extract, logger)
    const { clock } = settings.native
    const now = clock === undefined ? () => performance.now() : () => clock.now()
    this.jwks = settings.jwks === undefined ? undefined : new Jwks(settings.jwks, native, logger, now)
    this.#version = native.rulesVersion()
  }

  /**
   * A limiter of its own.
   * @param {object} options
   * @param {'limiter' | 'express' | 'fastify'} way
   * @param {import('..').Logger} [appLogger] the framework's, where the user gave none
   */
  static open(options, way, appLogger) {
    const settings = readOptions(options, way)
    const logger = new Logger(options.logger ?? appLogger)
    const native = new NativeLimiter(settings.native, output, (level, message) =>
      logger.write(level, message)
    )
    if (settings.native.keyExtractor === 'jwt-sub' && !native.verifies) {
      logger.warn(
        "keyExtractor is 'jwt-sub' without jwt: the subject of a token is believed unverified, so a client can make up " +
          'another one for each request. Give jwt, or a limit for the address with perAddress'
      )
    }
    if (!native.knowsTenant) {
      logger.once('NO_RULE', 'the rules have nothing for this tenantId: its requests are not limited')
    }
    if (cluster.isWorker && !saidCluster) {
      saidCluster = true
      logger.warn(
        'limits in memory are per process: with node:cluster each worker counts alone, so clients get the limit as often as there are workers'
      )
    }
    return new Core(native, options, settings, logger)
  }

  /** A limiter with options of its own over these, that counts in the same store under `scope`. */
  derive(routeOptions, scope) {
    readOptions(routeOptions, 'route')
    const options = mergeRoute(this.options, routeOptions)
    const settings = readOptions(options, 'route')
    return new Core(this.native.derive(settings.native, scope, output), options, settings, this.logger)
  }

  /**
   * The rule of a request, or what stands for none; −1 when a rule says not to look at it.
   * @param {string} method
   * @param {string | undefined} pattern of the route that the framework found
   * @param {string} path
   * @param {boolean} isRoute whether `pattern` is the app's own text, of which there are only so many
   */
  match(method, pattern, path, isRoute) {
    if (!this.hasRules) return 0
    this.#follow()
    // A rule may be more specific than the route (/trpc/login, /trpc/:name): only a route without parameters says it all.
    if (!isRoute || pattern === undefined || !LITERAL.test(pattern))
      return this.native.match(method, pattern, path)
    let rules = this.#matches.get(method)
    if (rules === undefined) this.#matches.set(method, (rules = new Map()))
    let rule = rules.get(pattern)
    if (rule === undefined) rules.set(pattern, (rule = this.native.match(method, pattern, path)))
    return rule
  }

  /** Forgets what was read of the rules when they are others than before. */
  #follow() {
    const version = this.native.rulesVersion()
    if (version === this.#version) return
    this.#version = version
    this.#matches.clear()
  }

  /** The last native decision, with the names of its rule's policies. */
  decision(shadow) {
    const rule = output[RULE]
    if (rule !== this.#rule) {
      this.#rule = rule
      // A file that was reloaded this very moment takes the names with it.
      this.#names = this.native.rule(rule)?.policies ?? []
    }
    if (output[COUNT] === 0 && output[OUTCOME] === ALLOWED) {
      this.logger.once(
        'NO_RULE',
        'the rules have no default for this tenantId: requests that come under none of them are not limited'
      )
    }
    return readDecision(this.#names, shadow)
  }
}

module.exports = { Core }
