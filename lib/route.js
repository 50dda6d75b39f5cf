// The guards of routes that have options of their own: one for each route, shared by the forms that Fastify generates.
'use strict'

const { Guard } = require('./guard.js')
const { found, rangeError, typeError } = require('./errors.js')
const { hasOwnPolicy, mergeRoute, onlyTreats, readOptions } = require('./options.js')

class RouteGuards {
  #core
  #parent
  #framework
  /** Guards by the route's options, then by its scope: one object may be the config of many routes. */
  #guards = new Map()

  constructor(core, parent, framework) {
    this.#core = core
    this.#parent = parent
    this.#framework = framework
  }

  /**
   * @param {object | false} own the route's `config.sluicegate`
   * @param {string} url its pattern
   * @param {string | string[]} method
   * @returns {Guard | undefined} none: the route is not limited
   */
  guardOf(own, url, method) {
    if (own === false) return undefined
    let scopes = this.#guards.get(own)
    if (scopes === undefined) {
      if (typeof own !== 'object' || own === null || Array.isArray(own)) {
        throw typeError(
          'INVALID_OPTIONS',
          'config.sluicegate',
          `must be an object or false, not ${found(own)}`
        )
      }
      this.#guards.set(own, (scopes = new Map()))
    }
    const scope = scopeOf(url, method)
    let guard = scopes.get(scope)
    if (guard === undefined) scopes.set(scope, (guard = this.#open(own, scope)))
    return guard
  }

  #open(own, scope) {
    if (onlyTreats(own)) {
      validateCost(own.cost)
      const settings = readOptions(mergeRoute(this.#core.options, own), 'route')
      return new Guard(this.#core, this.#framework, this.#parent, settings)
    }
    return new Guard(this.#core.derive(own, hasOwnPolicy(own) ? scope : ''), this.#framework, this.#parent)
  }
}

/** Here Rust sees the cost with each request only, and a mistake should stop the app at its start. */
function validateCost(cost) {
  if (cost === undefined || cost === null || typeof cost === 'function') return
  const allowed = `must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER} or a function, not ${found(cost)}`
  if (typeof cost !== 'number') throw typeError('INVALID_COST', 'cost', allowed)
  if (!Number.isSafeInteger(cost) || cost < 0) throw rangeError('INVALID_COST', 'cost', allowed)
}

/** HEAD counts where GET does, and the two forms of a prefix's root (/api, /api/) are one route. */
function scopeOf(url, method) {
  const path = url.length > 1 && url.endsWith('/') ? url.slice(0, -1) : url
  if (typeof method === 'string') return `${method === 'HEAD' ? 'GET' : method} ${path}`
  const methods = method.filter((name) => name !== 'HEAD' || !method.includes('GET'))
  return `${methods.join(',')} ${path}`
}

module.exports = { RouteGuards }
