// Builds a Decision from the numbers that the native core left in the shared output; contract: src/node.
// Always the same fields in the same order, so that V8 keeps one shape for all of them.
'use strict'

const { output } = require('./addon.js')

const OUTCOMES = ['allowed', 'denied', 'allowlisted', 'denylisted', 'degraded']
const ALLOWED = 0
const DENIED = 1
const DENYLISTED = 3

const OUTCOME = 0
const COUNT = 1
const BINDING = 2
const RULE = 3
const BLOCKED_FOR = 4
const DELAY = 5
/** Of a request only, like the headers. */
const RETRY_AFTER_SECONDS = 6
/** Where the numeric header values begin. */
const HEADERS = 7
const POLICIES = 16
const POLICY_LENGTH = 7

/**
 * The last native decision.
 * @param {string[]} names of the policies of its rule
 * @param {boolean} shadow whether it only reports: then it allows and delays nothing, and `outcome` says how it came out
 * @returns {import('..').Decision}
 */
function readDecision(names, shadow) {
  const outcome = output[OUTCOME]
  const count = output[COUNT]
  if (count === 0) return uncounted(outcome, shadow)
  const first = readPolicy(names[0] ?? '', POLICIES)
  // One policy is by far the most, and a list that is written out has no room to spare: `push` makes room for 17.
  const policies = [first]
  for (let index = 1; index < count; index++) {
    policies.push(readPolicy(names[index] ?? '', POLICIES + index * POLICY_LENGTH))
  }
  const bound = count === 1 ? first : policies[output[BINDING]]
  return {
    allowed: shadow || outcome !== DENIED,
    outcome: OUTCOMES[outcome],
    limit: bound.limit,
    remaining: bound.remaining,
    resetAt: bound.resetAt,
    nextAt: bound.nextAt,
    retryAfterMs: bound.retryAfterMs,
    delayMs: shadow ? 0 : small(output[DELAY]),
    policy: bound.policy,
    policies
  }
}

function readPolicy(policy, at) {
  const retryAfterMs = output[at + 5]
  return {
    policy,
    allowed: output[at] === 1,
    // Amounts are whole and at most 10⁹.
    limit: output[at + 1] | 0,
    remaining: output[at + 2] | 0,
    resetAt: output[at + 3],
    nextAt: output[at + 4],
    retryAfterMs: retryAfterMs < 0 ? null : small(retryAfterMs),
    delayMs: small(output[at + 6])
  }
}

/** The same number; 0, which is most waits, without a box on the heap. */
function small(number) {
  return number === 0 ? 0 : number
}

/** A decision without numbers, for nobody counted any. */
function uncounted(outcome, shadow) {
  const refused = outcome === DENYLISTED
  const blockedFor = output[BLOCKED_FOR]
  return {
    allowed: shadow || !refused,
    outcome: OUTCOMES[outcome],
    limit: 0,
    remaining: 0,
    resetAt: 0,
    nextAt: 0,
    retryAfterMs: refused ? (blockedFor < 0 ? null : blockedFor) : 0,
    delayMs: 0,
    policy: '',
    policies: []
  }
}

/**
 * The decision about what no rule limits.
 * @returns {import('..').Decision}
 */
function unlimited() {
  return {
    allowed: true,
    outcome: 'allowed',
    limit: 0,
    remaining: 0,
    resetAt: 0,
    nextAt: 0,
    retryAfterMs: 0,
    delayMs: 0,
    policy: '',
    policies: []
  }
}

module.exports = {
  ALLOWED,
  COUNT,
  HEADERS,
  OUTCOME,
  RETRY_AFTER_SECONDS,
  RULE,
  readDecision,
  unlimited
}
