// Reads a user's options: what JavaScript alone knows (functions, hooks, the store's settings) is checked here and taken
// out, everything else is left for Rust to judge.
'use strict'

const { found, rangeError, typeError } = require('./errors.js')
const { validateLogger } = require('./logger.js')

const POLICY = words('limit window algorithm burst align maxDelay')
/** Read by Rust. */
const NATIVE = words(`
  tenantId keyExtractor keyHeader limit window algorithm burst align maxDelay limits name rules cost perAddress allow deny
  headers reset ipv6Subnet jwt mode maxKeys clock`)
/** Of the stores that are not in the process: checked now, so that a config does not change its meaning later. */
const STORE = ['failOpen', 'onFailure', 'timeout', 'denyCache', 'prefix', 'onMiss']
/** Of the next releases. */
const LATER = ['redisUrl', 'serviceUrl', 'checkSecret', 'tls', 'sentinel', 'functions']
const MIDDLEWARE = ['skip', 'skipFailedRequests', 'skipSuccessfulRequests', 'onDenied']
/** What JavaScript does with a decision, or asks for: none of it makes another counter. */
const TREATMENT = [...MIDDLEWARE, 'cost', 'mode']

/** What each way in takes, in the order of the documentation. */
const ALLOWED = {
  limiter: [...NATIVE, ...STORE, ...LATER, 'logger'],
  express: [...NATIVE, ...MIDDLEWARE, ...STORE, ...LATER, 'logger'],
  fastify: [...NATIVE, ...MIDDLEWARE, ...STORE, ...LATER, 'logger', 'hook']
}
/** What is one for the whole limiter and so cannot be said for a route. */
const WHOLE = new Set(['tenantId', 'rules', 'maxKeys', 'clock', 'logger', 'hook', ...STORE, ...LATER])
ALLOWED.route = ALLOWED.fastify.filter((name) => !WHOLE.has(name))

const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler']

/**
 * @typedef {object} Settings what JavaScript keeps of the options
 * @property {object} native the options that Rust reads
 * @property {((req: any) => number) | undefined} limit
 * @property {((req: any) => number) | undefined} cost
 * @property {((req: any) => unknown) | undefined} extract
 * @property {(() => unknown) | undefined} jwks
 * @property {((req: any) => boolean) | undefined} skip
 * @property {boolean} skipFailed
 * @property {boolean} skipSuccessful
 * @property {'throw' | Function | undefined} onDenied
 * @property {'enforce' | 'shadow' | undefined} mode
 * @property {string} hook
 */

/**
 * Checks `options` for one way in and parts them.
 * @param {object} options
 * @param {'limiter' | 'express' | 'fastify' | 'route'} way
 * @returns {Settings}
 */
function readOptions(options, way) {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw typeError('INVALID_OPTIONS', 'options', `must be an object, not ${found(options)}`)
  }
  const allowed = ALLOWED[way]
  for (const name of Object.keys(options)) {
    if (allowed.includes(name) || options[name] === undefined) continue
    const where =
      way === 'route' ? 'an option of a route' : way === 'limiter' ? 'an option here' : 'an option'
    throw typeError('UNKNOWN_OPTION', name, `is not ${where}; allowed are ${allowed.join(', ')}`)
  }
  refuseLater(options)
  readStore(options)
  if (given(options.logger)) validateLogger(options.logger)
  return {
    native: pick(options, NATIVE),
    limit: functionOr(options.limit),
    cost: functionOr(options.cost),
    extract: functionOr(options.keyExtractor),
    jwks: functionOr(options.jwt?.jwks),
    skip: readFunction(options, 'skip', 'INVALID_SKIP'),
    skipFailed: readSwitch(options, 'skipFailedRequests', 'INVALID_SKIP_FAILED_REQUESTS') ?? false,
    skipSuccessful:
      readSwitch(options, 'skipSuccessfulRequests', 'INVALID_SKIP_SUCCESSFUL_REQUESTS') ?? false,
    onDenied:
      options.onDenied === 'throw'
        ? 'throw'
        : readFunction(options, 'onDenied', 'INVALID_ON_DENIED', "'throw' or "),
    mode: readWord(options, 'mode', 'INVALID_MODE', ['enforce', 'shadow']),
    hook: readWord(options, 'hook', 'INVALID_HOOK', HOOKS) ?? 'onRequest'
  }
}

/**
 * The options of a route over those of the plugin. A policy is taken over as a whole or field by field, never so that a
 * field means something that nobody wrote: a limit of its own drops the plugin's burst, an algorithm of its own drops
 * what belonged to the other one.
 */
function mergeRoute(plugin, route) {
  const base = pick(plugin, ALLOWED.route)
  delete base.name
  if (given(route.limits)) for (const name of POLICY) delete base[name]
  else if (POLICY.some((name) => given(route[name]))) {
    delete base.limits
    if (given(route.limit) || given(route.algorithm)) delete base.burst
    if (given(route.algorithm)) {
      delete base.align
      delete base.maxDelay
    }
  }
  return Object.assign(base, pick(route, ALLOWED.route))
}

/** Whether a route has limits of its own, and so counters of its own. */
function hasOwnPolicy(route) {
  return given(route.name) || given(route.limits) || POLICY.some((name) => given(route[name]))
}

/** Whether the options of a route only change how a request is treated, so that no limiter need be made for it. */
function onlyTreats(route) {
  return Object.keys(route).every((name) => !given(route[name]) || TREATMENT.includes(name))
}

/** Numbers for what JSON cannot write, so that the same function twice is the same. */
const numbers = new WeakMap()
let lastNumber = 0

/**
 * What two limiters must have in common to be one: a name and, value for value, the same options. Without a name each is
 * its own.
 */
function identityOf(settings) {
  if (!given(settings.native.name)) return Symbol('limiter')
  return JSON.stringify(settings, (key, value) => {
    if (typeof value !== 'function' && key !== 'clock') return value
    if (!numbers.has(value)) numbers.set(value, ++lastNumber)
    return numbers.get(value)
  })
}

function refuseLater(options) {
  if (given(options.serviceUrl) && given(options.redisUrl)) {
    throw typeError(
      'CONTRADICTION',
      'serviceUrl',
      'cannot be given together with redisUrl: one store decides'
    )
  }
  for (const name of LATER) {
    if (!given(options[name]) || (name === 'functions' && options[name] === false)) continue
    throw typeError('NOT_AVAILABLE', name, 'comes with a later release; this one decides in memory only')
  }
}

function readStore(options) {
  const { timeout, prefix } = options
  const failOpen = readSwitch(options, 'failOpen', 'INVALID_FAIL_OPEN')
  readSwitch(options, 'denyCache', 'INVALID_DENY_CACHE')
  const onFailure = readWord(options, 'onFailure', 'INVALID_ON_FAILURE', ['open', 'closed', 'local'])
  if (failOpen !== undefined && onFailure !== undefined && onFailure !== (failOpen ? 'open' : 'closed')) {
    const meaning = `${failOpen} means onFailure '${failOpen ? 'open' : 'closed'}', but onFailure is '${onFailure}'`
    throw typeError('CONTRADICTION', 'failOpen', meaning)
  }
  if (given(timeout)) {
    const allowed = 'must be a whole number of milliseconds from 1 to 60000'
    if (typeof timeout !== 'number') {
      throw typeError('INVALID_TIMEOUT', 'timeout', `${allowed}, not ${found(timeout)}`)
    }
    if (!Number.isInteger(timeout) || timeout < 1 || timeout > 60_000) {
      throw rangeError('INVALID_TIMEOUT', 'timeout', `${allowed}, not ${found(timeout)}`)
    }
  }
  if (given(prefix) && (typeof prefix !== 'string' || prefix === '')) {
    throw typeError(
      'INVALID_PREFIX',
      'prefix',
      `must be text of at least one character, not ${found(prefix)}`
    )
  }
  readFunction(options, 'onMiss', 'INVALID_ON_MISS')
}

function readFunction(options, name, code, orElse = '') {
  const value = options[name]
  if (!given(value)) return undefined
  if (typeof value === 'function') return value
  throw typeError(code, name, `must be ${orElse}a function, not ${found(value)}`)
}

function readSwitch(options, name, code) {
  const value = options[name]
  if (!given(value) || typeof value === 'boolean') return value ?? undefined
  throw typeError(code, name, `must be true or false, not ${found(value)}`)
}

function readWord(options, name, code, choices) {
  const value = options[name]
  if (!given(value)) return undefined
  const allowed = `must be one of ${choices.map((word) => `'${word}'`).join(', ')}, not ${found(value)}`
  if (typeof value !== 'string') throw typeError(code, name, allowed)
  if (!choices.includes(value)) throw rangeError(code, name, allowed)
  return value
}

function given(value) {
  return value !== undefined && value !== null
}

function functionOr(value) {
  return typeof value === 'function' ? value : undefined
}

function pick(options, names) {
  const picked = {}
  for (const name of names) if (given(options[name])) picked[name] = options[name]
  return picked
}

function words(text) {
  return text.trim().split(/\s+/)
}

module.exports = { hasOwnPolicy, identityOf, mergeRoute, onlyTreats, readOptions }
