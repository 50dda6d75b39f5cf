// What the key of a request is made of: its address and its credential, read only as far as the native core asks.
// Requests of Fastify, Express and node:http are all alike here; `keyOf` takes any other kind as well.
'use strict'

const { found, typeError } = require('./errors.js')

const NEEDS_ADDRESS = 1
const INVALID_ADDRESS = 2
const NEEDS_KEYS = 4
const NO_ADDRESS = 8
const STALE_RULE = 32
const BLANK_KEY = 64
/** What a check may ask for before it has decided. */
const UNDECIDED = NEEDS_ADDRESS | INVALID_ADDRESS | NEEDS_KEYS | STALE_RULE

class RequestSource {
  #keyOf
  #checkRequest
  #header
  #extract
  #readsAddress
  #logger

  /**
   * @param {object} native the native limiter
   * @param {Record<string, Function>} hot its fast functions
   * @param {((req: any) => unknown) | undefined} extract the user's own extractor
   * @param {import('./logger.js').Logger} logger
   */
  constructor(native, hot, extract, logger) {
    this.#checkRequest = hot.checkRequest
    this.#keyOf = hot.keyOf
    this.#extract = native.source === 'custom' ? extract : undefined
    this.#header = headerOf(native)
    this.#readsAddress = native.readsAddress
    this.#logger = logger
  }

  /**
   * What the client says of itself, or a promise of it where the user's extractor is async.
   * @returns {string | undefined | Promise<string | undefined>}
   */
  credential(req) {
    if (this.#extract !== undefined) return this.#custom(this.#extract(req))
    return this.#header === undefined ? undefined : nodeHeader(req.headers, this.#header)
  }

  /**
   * Decides natively about one request, and hands over the address if asked for.
   * @returns {number} 0 decided; NEEDS_KEYS or STALE_RULE: nothing was
   */
  check(req, rule, credential, cost, limit, keysFinal) {
    const check = this.#checkRequest
    let address = this.#readsAddress ? addressOf(req) : undefined
    // Arguments that are not there cost nothing, and `undefined` costs 30 ns each.
    const plain = cost === undefined && limit === undefined && !keysFinal
    let flags = plain
      ? check(rule, address, credential)
      : check(rule, address, credential, cost, limit, keysFinal)
    if (flags === undefined) return 0
    if (flags & NEEDS_ADDRESS) {
      address = addressOf(req)
      flags = check(rule, address, credential, cost, limit, keysFinal)
    }
    if (flags & INVALID_ADDRESS) {
      const socket = socketAddressOf(req)
      flags = check(rule, socket === address ? null : socket, credential, cost, limit, keysFinal)
      // Not even the socket has one that can be read, as behind some test injectors.
      if (flags & INVALID_ADDRESS) {
        flags = check(rule, null, credential, cost, limit, keysFinal)
      }
    }
    if (flags & (NO_ADDRESS | BLANK_KEY)) this.#say(flags)
    return flags & UNDECIDED
  }

  /**
   * The key that a request counts under, as text for `reset`, `block` and `refund`.
   * @param {any} req of a framework, of Node, a WHATWG Request, or an object with `ip` and `headers`
   * @param {import('./jwks.js').Jwks | undefined} jwks
   * @returns {Promise<string>}
   */
  async keyOf(req, jwks) {
    let credential
    if (this.#extract !== undefined) credential = await this.#custom(this.#extract(req))
    else if (this.#header !== undefined) credential = anyHeader(req.headers, this.#header)
    let address = addressOf(req)
    let key = this.#keyOf(address, credential)
    if (typeof key === 'number' && key & NEEDS_KEYS) {
      await jwks?.refresh()
      key = this.#keyOf(address, credential, true)
    }
    if (typeof key === 'number' && key & INVALID_ADDRESS) {
      const socket = socketAddressOf(req)
      address = socket === address ? null : socket
      key = this.#keyOf(address, credential, true)
    }
    return typeof key === 'string' ? key : this.#keyOf(null, credential, true)
  }

  #custom(value) {
    if (typeof value === 'string' || value === undefined) return value
    if (value === null) return undefined
    if (typeof value.then === 'function') return value.then(textOrNothing)
    return textOrNothing(value)
  }

  #say(flags) {
    if (flags & NO_ADDRESS) {
      this.#logger.once(
        'NO_ADDRESS',
        'a request came without an address (a Unix socket, a connection already closed, a test injector): all such ' +
          'requests count as one client'
      )
    }
    if (flags & BLANK_KEY) {
      this.#logger.once(
        'BLANK_KEY',
        'keyExtractor gave nothing for a request: such requests count by their address'
      )
    }
  }
}

function headerOf(native) {
  switch (native.source) {
    case 'header':
    case 'composite':
      return native.keyHeader
    case 'authorization':
      return 'authorization'
    default:
      return undefined
  }
}

function textOrNothing(value) {
  if (typeof value === 'string' || value === undefined) return value
  if (value === null) return undefined
  throw typeError('INVALID_KEY', 'keyExtractor', `must give text or nothing, not ${found(value)}`)
}

/** The framework's idea of the client's address, or the socket's; null when there is none. */
function addressOf(req) {
  // A getter of `ip` may throw: an HTTP/2 stream outlives its session's socket, and Fastify's asks the socket.
  try {
    const { ip } = req
    if (typeof ip === 'string' && ip !== '') return ip
  } catch {
    return null
  }
  return socketAddressOf(req)
}

function socketAddressOf(req) {
  try {
    const address = req.socket?.remoteAddress
    return typeof address === 'string' && address !== '' ? address : null
  } catch {
    return null
  }
}

/** A header of a request that Node parsed: names are in lower case already. */
function nodeHeader(headers, name) {
  const value = headers[name]
  if (typeof value === 'string') return value
  return Array.isArray(value) ? value.join(', ') : undefined
}

/** A header of any request: Node's, a WHATWG Headers, or a plain object in any case. */
function anyHeader(headers, name) {
  if (headers === undefined || headers === null) return undefined
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined
  const value = nodeHeader(headers, name)
  if (value !== undefined) return value
  // Sorted, so that of two spellings the same one counts whatever the order they were written in.
  const spelled = Object.keys(headers)
    .sort()
    .find((key) => key.toLowerCase() === name)
  return spelled === undefined ? undefined : nodeHeader(headers, spelled)
}

module.exports = { NEEDS_KEYS, RequestSource, STALE_RULE }
