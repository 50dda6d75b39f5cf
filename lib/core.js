// One native limiter together with what JavaScript alone knows of it: the user's functions, his logger, his keys.
// The generic limiter and the middleware both stand on it.
'use strict'

const cluster = require('node:cluster')

const { NativeLimiter, output } = require('./addon.js')
const { RULE, readDecision } = require('./decision.js')
const { Jwks } = require('./jwks.js')
const { Logger } = require('./logger.js')
const { mergeRoute, readOptions } = require('./options.js')
const { RequestSource } = require('./request.js')

/** A pattern without parameters or wildcards, in Fastify's spelling. */
const LITERAL = /^[^:*(]*$/

let saidCluster = false

class Core {
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
    this.options = options
    this.settings = settings
    this.logger = logger
    this.shadow = native.shadow
    /** Rules can change, and routes come with them, while the limiter lives. */
    this.hasRules = settings.native.rules !== undefined
    this.source = new RequestSource(native, settings.extract, logger)
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
    return new Core(this.native.derive(settings.native, scope), options, settings, this.logger)
  }

  /**
   * The rule of a request; −1 when it is not limited.
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
    this.#names = []
    this.#matches.clear()
  }

  /** The last native decision, with the names of its rule's policies. */
  decision() {
    const rule = output[RULE]
    return readDecision(this.#names[rule] ?? this.#namesOf(rule), this.shadow)
  }

  #namesOf(rule) {
    return (this.#names[rule] = this.native.rule(rule).policies)
  }
}

module.exports = { Core }
