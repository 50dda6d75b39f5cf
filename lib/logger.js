// Where a limiter says things: the app's logger, or Node's own warnings. What concerns every request is said once.
'use strict'

const { found, typeError } = require('./errors.js')

class Logger {
  #logger
  #said = new Set()

  /** @param {import('..').Logger | undefined} logger */
  constructor(logger) {
    this.#logger = logger ?? processWarnings
  }

  info(message) {
    this.#logger.info(oneLine(message))
  }

  warn(message) {
    this.#logger.warn(oneLine(message))
  }

  error(message) {
    this.#logger.error(oneLine(message))
  }

  /** Whatever level Rust names. */
  write(level, message) {
    this.#logger[level](oneLine(message))
  }

  /** Warns the first time that `code` comes up; the rest of the time costs one look into a set. */
  once(code, message) {
    if (this.#said.has(code)) return
    this.#said.add(code)
    this.warn(message)
  }
}

/**
 * A message as one line without control characters: an error's text may have something of a client in it.
 * The places of a stack stay readable, one behind the other.
 */
function oneLine(message) {
  return message
    .replace(/\n +at /g, ' at ')
    .replace(/[\p{Cc}\u2028\u2029]/gu, (character) => `\\u{${character.codePointAt(0).toString(16)}}`)
}

/** Without a logger: warnings go where Node's own go, `--no-warnings` and `process.on('warning')` included. */
const processWarnings = {
  info() {},
  warn: emitWarning,
  error: emitWarning
}

function emitWarning(message) {
  process.emitWarning(message, 'SluicegateWarning')
}

/** Throws unless `logger` can be written to. */
function validateLogger(logger) {
  const methods = ['info', 'warn', 'error']
  const kind = typeof logger
  if ((kind !== 'object' && kind !== 'function') || logger === null) {
    throw typeError(
      'INVALID_LOGGER',
      'logger',
      `must be an object with info, warn and error, not ${found(logger)}`
    )
  }
  for (const method of methods) {
    if (typeof logger[method] !== 'function') {
      throw typeError(
        'INVALID_LOGGER',
        'logger',
        `must have the functions info, warn and error; ${method} is missing`
      )
    }
  }
}

module.exports = { Logger, validateLogger }
