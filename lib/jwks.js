// Keys that a `jwks` function brings when a token names one that is not known: one call at a time, at most one in thirty
// seconds (a forged token names a new key each time), and the keys at hand stay when it fails.
'use strict'

/** How long an unknown key does not make the function run again. */
const REFRESH_MS = 30_000
/** How long requests wait for the function; what comes later is still taken. */
const PATIENCE_MS = 5_000

class Jwks {
  #fetch
  #native
  #logger
  #now
  #flight
  #refreshedAt = -Infinity
  #failing = false

  /**
   * @param {() => unknown} fetch the user's function
   * @param {{ setJwks(jwks: string): void }} native
   * @param {import('./logger.js').Logger} logger
   * @param {() => number} now milliseconds of a clock that never goes back
   */
  constructor(fetch, native, logger, now) {
    this.#fetch = fetch
    this.#native = native
    this.#logger = logger
    this.#now = now
  }

  /**
   * Fetches the keys unless that was done a moment ago. Never rejects: without new keys the old ones decide.
   * @returns {Promise<void>}
   */
  refresh() {
    if (this.#flight !== undefined) return this.#flight
    const now = this.#now()
    if (now - this.#refreshedAt < REFRESH_MS) return Promise.resolve()
    this.#refreshedAt = now
    this.#flight = this.#fly().finally(() => {
      this.#flight = undefined
    })
    return this.#flight
  }

  #fly() {
    const taken = this.#take().then(
      () => this.#came(),
      (error) => this.#failed(error)
    )
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#failed(new Error(`no answer in ${PATIENCE_MS} ms`))
        resolve()
      }, PATIENCE_MS)
      taken.then(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  async #take() {
    const jwks = await this.#fetch()
    this.#native.setJwks(typeof jwks === 'string' ? jwks : JSON.stringify(jwks))
  }

  #came() {
    if (this.#failing) this.#logger.info('jwt.jwks: the keys came again')
    this.#failing = false
  }

  #failed(error) {
    if (this.#failing) return
    this.#failing = true
    this.#logger.error(`jwt.jwks failed, the keys at hand stay in use: ${error?.message ?? error}`)
  }
}

module.exports = { Jwks }
