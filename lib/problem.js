// What a client is told that may not pass: a problem document of RFC 9457, and the error for the app's own handler.
'use strict'

const { DeniedError } = require('./errors.js')

const MEDIA_TYPE = 'application/problem+json'
const QUOTA_EXCEEDED = 'https://iana.org/assignments/http-problem-types#quota-exceeded'

/** The body of a 429 or a 403, as bytes: text would make Fastify add a charset that the media type does not have. */
function problemOf(decision, status) {
  const problem =
    status === 429
      ? {
          type: QUOTA_EXCEEDED,
          title: 'Quota exceeded',
          status,
          detail: detailOf(decision, status),
          'violated-policies': violated(decision)
        }
      : { type: 'about:blank', title: 'Forbidden', status, detail: detailOf(decision, status) }
  return Buffer.from(JSON.stringify(problem))
}

/** The same for `onDenied: 'throw'`. */
function errorOf(decision, status) {
  return new DeniedError(status, detailOf(decision, status), decision)
}

function detailOf(decision, status) {
  const wait = decision.retryAfterMs
  if (status === 403) {
    return wait === null ? 'This client is not served.' : `This client is blocked for ${inWords(wait)}.`
  }
  if (wait !== null) return `The quota is used up; try again in ${inWords(wait)}.`
  return decision.limit === 0 ? 'The quota is zero.' : 'The request costs more than the whole quota.'
}

function violated(decision) {
  const names = []
  for (const policy of decision.policies) if (!policy.allowed) names.push(policy.policy)
  return names
}

function seconds(ms) {
  return Math.max(1, Math.ceil(ms / 1000))
}

function inWords(ms) {
  const wait = seconds(ms)
  return wait === 1 ? '1 second' : `${wait} seconds`
}

module.exports = { MEDIA_TYPE, errorOf, problemOf }
