// The errors that JavaScript raises itself. Each has a stable `code`; what is wrong with an option names it in `field`.
// Rust's errors (src/error.rs) look the same from outside.
'use strict'

/** Every code that JavaScript can raise beside Rust's, in the order of docs/error-codes.md. */
const CODES = [
  'ERR_SLUICEGATE_ADDON_MISSING',
  'ERR_SLUICEGATE_CONTRADICTION',
  'ERR_SLUICEGATE_CLOSED',
  'ERR_SLUICEGATE_DENIED',
  'ERR_SLUICEGATE_DENYLISTED',
  'ERR_SLUICEGATE_INTERNAL',
  'ERR_SLUICEGATE_INVALID_COST',
  'ERR_SLUICEGATE_INVALID_DENY_CACHE',
  'ERR_SLUICEGATE_INVALID_FAIL_OPEN',
  'ERR_SLUICEGATE_INVALID_HOOK',
  'ERR_SLUICEGATE_INVALID_KEY',
  'ERR_SLUICEGATE_INVALID_LIMIT',
  'ERR_SLUICEGATE_INVALID_LOGGER',
  'ERR_SLUICEGATE_INVALID_MODE',
  'ERR_SLUICEGATE_INVALID_ON_DENIED',
  'ERR_SLUICEGATE_INVALID_ON_FAILURE',
  'ERR_SLUICEGATE_INVALID_ON_MISS',
  'ERR_SLUICEGATE_INVALID_OPTIONS',
  'ERR_SLUICEGATE_INVALID_PREFIX',
  'ERR_SLUICEGATE_INVALID_SKIP',
  'ERR_SLUICEGATE_INVALID_SKIP_FAILED_REQUESTS',
  'ERR_SLUICEGATE_INVALID_SKIP_SUCCESSFUL_REQUESTS',
  'ERR_SLUICEGATE_INVALID_TIMEOUT',
  'ERR_SLUICEGATE_NOT_AVAILABLE',
  'ERR_SLUICEGATE_UNKNOWN_OPTION'
]

/**
 * A value of the wrong kind, an option that does not exist, a contradiction.
 * @param {string} name the code without its prefix
 * @param {string} field the option at fault
 * @param {string} problem what is wrong, to be read after the field
 */
function typeError(name, field, problem) {
  return coded(new TypeError(`${field} ${problem}`), name, field)
}

/**
 * A value of the right kind outside what is allowed.
 * @param {string} name the code without its prefix
 * @param {string} field the option at fault
 * @param {string} problem what is wrong, to be read after the field
 */
function rangeError(name, field, problem) {
  return coded(new RangeError(`${field} ${problem}`), name, field)
}

function coded(error, name, field) {
  error.code = `ERR_SLUICEGATE_${name}`
  error.field = field
  return error
}

/** The limiter was closed. */
function closedError() {
  const error = new Error('the limiter is closed')
  error.code = 'ERR_SLUICEGATE_CLOSED'
  return error
}

/** A request that may not pass, for the app's error handler: `onDenied: 'throw'`. */
class DeniedError extends Error {
  /**
   * @param {number} statusCode 429, or 403 for a client on the denylist
   * @param {string} message what the client is told
   * @param {import('..').Decision} decision
   */
  constructor(statusCode, message, decision) {
    super(message)
    this.name = 'DeniedError'
    this.code = statusCode === 403 ? 'ERR_SLUICEGATE_DENYLISTED' : 'ERR_SLUICEGATE_DENIED'
    this.statusCode = statusCode
    // Express and Koa read `status` as well as `statusCode`, and show the message only when `expose` says so.
    this.status = statusCode
    this.expose = true
    this.decision = decision
  }
}

/** A value in a few words, for a message: never a whole document, and nothing that may be a secret. */
function found(value) {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.slice(0, 40))
    case 'number':
    case 'boolean':
    case 'undefined':
      return String(value)
    case 'bigint':
      return 'a bigint'
    case 'object':
      return 'an object'
    default:
      return `a ${typeof value}`
  }
}

module.exports = { CODES, DeniedError, closedError, found, rangeError, typeError }
