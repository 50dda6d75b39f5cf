// What Fastify and Express share: one request goes through, waits or is answered, and its headers tell how it stands.
// A Guard is one limiter in front of one framework; the framework is a few plain functions (fastify.js, express.js).
'use strict'

const { output } = require('./addon.js')
const { COUNT, HEADERS, RETRY_AFTER_SECONDS } = require('./decision.js')
const { found, typeError } = require('./errors.js')
const { identityOf } = require('./options.js')
const { errorOf, problemOf } = require('./problem.js')
const { refundAfter } = require('./refund.js')
const { NEEDS_KEYS, STALE_RULE } = require('./request.js')

/** Which limiters a request went through: one Guard, or a list when there are several. */
const CHECKED_BY = Symbol('sluicegate.checkedBy')
/** The longest time that a Node timer can wait. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * @typedef {object} Framework how a framework is spoken to; `res` is whatever it answers with
 * @property {(req: any) => string} method
 * @property {(req: any) => string | undefined} pattern of the route, where one was found
 * @property {boolean} hasOwnPatterns whether a pattern is the app's text alone, with nothing of the client in it
 * @property {(req: any) => string} path whole, however deep the limiter is mounted
 * @property {(res: any, name: string, value: string | number) => void} set
 * @property {(res: any, name: string) => void} remove
 * @property {(res: any, status: number) => void} status
 * @property {(res: any, status: number, problem: Buffer) => void} send
 * @property {(res: any, value: unknown) => boolean} sendValue what a function returned instead of sending it, if that is done
 * @property {(res: any) => boolean} answered
 * @property {(res: any) => import('node:http').ServerResponse} raw
 */

class Guard {
  #core
  #framework
  #source
  #skip
  #cost
  #limit
  #onDenied
  #shadow
  #headerNames
  #headerIsText
  #hasTexts
  #refunds

  /**
   * @param {import('./core.js').Core} core
   * @param {Framework} framework
   * @param {Guard} [parent] the plugin's guard, when this one is for a route: a request meets one of them
   * @param {import('./options.js').Settings} [settings] of a route that counts where the plugin counts
   */
  constructor(core, framework, parent, settings = core.settings) {
    const { native } = core
    this.#core = core
    this.#framework = framework
    this.#source = core.source
    this.#skip = settings.skip
    this.#cost = settings.cost ?? (core.settings === settings ? undefined : settings.native.cost)
    this.#limit = settings.limit
    this.#onDenied = settings.onDenied
    this.#shadow = settings.mode === undefined ? core.shadow : settings.mode === 'shadow'
    this.#headerNames = native.headerNames
    this.#headerIsText = native.headerIsText
    this.#hasTexts = native.headerIsText.includes(true)
    this.#refunds = settings.skipFailed || settings.skipSuccessful ? settings : undefined
    this.identity = parent === undefined ? identityOf(settings) : parent.identity
  }

  /**
   * Lets a request through to `next`, now or later, gives `next` an error, or answers itself.
   * @param {any} req
   * @param {any} res
   * @param {(error?: unknown) => void} next
   */
  check(req, res, next) {
    let credential
    try {
      if (this.#met(req) || (this.#skip !== undefined && this.#skips(req))) credential = null
      else credential = this.#source.credential(req)
    } catch (error) {
      fail(next, error)
      return
    }
    // `next` runs the rest of the app, whose errors are none of ours: it is called outside of every try.
    if (credential === null) next()
    else if (typeof credential === 'object') {
      credential.then(
        (text) => this.#decide(req, res, next, text, false),
        (error) => fail(next, error)
      )
    } else this.#decide(req, res, next, credential, false)
  }

  /** Whether this limiter has seen the request before; from now on it has. */
  #met(req) {
    const met = req[CHECKED_BY]
    if (met === undefined || met === null) {
      req[CHECKED_BY] = this
      return false
    }
    if (!Array.isArray(met)) {
      if (met.identity === this.identity) return true
      req[CHECKED_BY] = [met, this]
      return false
    }
    for (const guard of met) if (guard.identity === this.identity) return true
    met.push(this)
    return false
  }

  #skips(req) {
    const skips = this.#skip(req)
    // A promise is truthy: taken for an answer it would leave everybody unlimited.
    if (typeof skips === 'object' && skips !== null) {
      throw typeError('INVALID_SKIP', 'skip', `must return true or false, not ${found(skips)}`)
    }
    return Boolean(skips)
  }

  #decide(req, res, next, credential, keysFinal) {
    let decision
    try {
      const core = this.#core
      const cost = this.#cost === undefined ? undefined : this.#costOf(req)
      const limit = this.#limit === undefined ? undefined : this.#limitOf(req)
      let rule = 0
      let flags = 0
      do {
        if (core.hasRules) rule = this.#ruleOf(req)
        if (rule < 0) break
        flags = this.#source.check(req, rule, credential, cost, limit, keysFinal)
        // Rules were replaced between the two calls: which one it is has to be asked again.
      } while (flags & STALE_RULE)
      if (flags & NEEDS_KEYS) {
        core.jwks.refresh().then(() => this.#decide(req, res, next, credential, true))
        return
      }
      if (rule >= 0) decision = this.#note(req, res)
    } catch (error) {
      fail(next, error)
      return
    }
    if (decision === undefined || (decision.allowed && decision.delayMs === 0)) next()
    else if (decision.allowed) this.#hold(res, decision.delayMs, next)
    else this.#refuse(req, res, decision, next)
  }

  /** Writes the decision down where the app and the client read it. Nothing may run between the check and this. */
  #note(req, res) {
    const framework = this.#framework
    const decision = this.#core.decision(this.#shadow)
    const counted = output[COUNT] > 0
    // No rule is for it, and no list: there is nothing to write down.
    if (!counted && decision.outcome === 'allowed') return decision
    const earlier = req.rateLimit
    if (earlier === undefined || earlier === null || isStricter(decision, earlier)) {
      req.rateLimit = decision
      if (counted && !framework.answered(res)) this.#setHeaders(req, res)
    }
    if (!decision.allowed && !framework.answered(res)) {
      const seconds = output[RETRY_AFTER_SECONDS]
      if (seconds >= 0) framework.set(res, 'Retry-After', seconds)
      framework.set(res, 'Cache-Control', 'no-store')
    }
    if (counted && this.#refunds !== undefined && decision.outcome === 'allowed') {
      const { skipFailed, skipSuccessful } = this.#refunds
      refundAfter(framework.raw(res), this.#core.native, skipFailed, skipSuccessful)
    }
    return decision
  }

  #setHeaders(req, res) {
    const framework = this.#framework
    const names = this.#headerNames
    const isText = this.#headerIsText
    if (Array.isArray(req[CHECKED_BY])) this.#clearOthers(req, res)
    const texts = this.#hasTexts ? this.#core.native.headerTexts() : undefined
    for (let index = 0, text = 0; index < names.length; index++) {
      framework.set(res, names[index], isText[index] ? texts[text++] : output[HEADERS + index])
    }
  }

  /** Headers of a laxer limiter that this one does not write itself would contradict it. */
  #clearOthers(req, res) {
    for (const guard of req[CHECKED_BY]) {
      for (const name of guard.#headerNames) {
        if (!this.#headerNames.includes(name)) this.#framework.remove(res, name)
      }
    }
  }

  /** Waits out the queue of a leaky bucket, unless the client leaves: then nobody needs an answer. */
  #hold(res, delayMs, next) {
    const raw = this.#framework.raw(res)
    const left = () => clearTimeout(timer)
    const timer = setTimeout(
      () => {
        raw.removeListener('close', left)
        next()
      },
      Math.min(delayMs, LONGEST_TIMER_MS)
    )
    if (raw.destroyed) left()
    else raw.once('close', left)
  }

  #refuse(req, res, decision, next) {
    const framework = this.#framework
    // Somebody answered while the key was awaited: there is nothing left to say, and a second answer throws.
    if (framework.answered(res)) return
    const onDenied = this.#onDenied
    const status = decision.outcome === 'denylisted' ? 403 : 429
    if (onDenied === undefined) {
      framework.send(res, status, problemOf(decision, status))
      return
    }
    if (onDenied === 'throw') {
      next(errorOf(decision, status))
      return
    }
    framework.status(res, status)
    let result
    try {
      result = onDenied(req, res, decision)
    } catch (error) {
      this.#refuseAnyway(res, decision, status, error)
      return
    }
    if (typeof result?.then === 'function' && result !== res) {
      result.then(
        (value) => {
          if (value !== undefined && framework.sendValue(res, value)) return
          if (!framework.answered(res)) framework.send(res, status, problemOf(decision, status))
        },
        (error) => this.#refuseAnyway(res, decision, status, error)
      )
    } else if (result !== undefined) framework.sendValue(res, result)
  }

  /** The user's own answer failed, and the client still may not pass. */
  #refuseAnyway(res, decision, status, error) {
    this.#core.logger.error(
      `onDenied failed, so the plain ${status} was sent: ${String(error?.stack ?? error)}`
    )
    if (!this.#framework.answered(res)) this.#framework.send(res, status, problemOf(decision, status))
  }

  #ruleOf(req) {
    const framework = this.#framework
    return this.#core.match(
      framework.method(req),
      framework.pattern(req),
      framework.path(req),
      framework.hasOwnPatterns
    )
  }

  #costOf(req) {
    const cost = typeof this.#cost === 'function' ? this.#cost(req) : this.#cost
    if (typeof cost === 'number') return cost
    throw typeError('INVALID_COST', 'cost', `must give a number, not ${found(cost)}`)
  }

  #limitOf(req) {
    const limit = this.#limit(req)
    if (typeof limit === 'number') return limit
    throw typeError('INVALID_LIMIT', 'limit', `must give a number, not ${found(limit)}`)
  }
}

/**
 * Hands over what the app's own function threw. Frameworks take nothing, and Express `'route'` and `'router'` too, for
 * "go on", which would let the request through unlimited.
 */
function fail(next, error) {
  const isError = typeof error === 'object' && error !== null
  next(
    isError ? error : new Error(`a function of the limiter's options threw ${found(error)}`, { cause: error })
  )
}

/** Whether a decision says less to go than the one that another limiter made about the same request. */
function isStricter(decision, earlier) {
  // Another library's, that uses the same property.
  if (earlier.policies === undefined) return true
  if (decision.policies.length === 0) return !decision.allowed || earlier.policies.length === 0
  if (earlier.policies.length === 0) return true
  if (decision.outcome !== earlier.outcome) return decision.outcome === 'denied'
  if (decision.outcome === 'denied')
    return (decision.retryAfterMs ?? Infinity) > (earlier.retryAfterMs ?? Infinity)
  return decision.remaining < earlier.remaining
}

module.exports = { CHECKED_BY, Guard }
