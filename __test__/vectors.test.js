// The golden vectors through the public API: the same sequences that hold the Rust core and the scripts (tests/vectors).
'use strict'

const assert = require('node:assert/strict')
const fs = require('node:fs')
const path = require('node:path')
const { test } = require('node:test')

const { ManualClock, createRateLimiter } = require('..')

const DIRECTORY = path.join(__dirname, '..', 'tests', 'vectors')
let named = 0

/** The vectors' microseconds as options: a number of milliseconds. None of them has a fraction, or it is not run here. */
function optionsOf(limits) {
  return limits.map(({ algorithm, limit, window, burst, align, maxDelay = 5_000_000 }) => ({
    algorithm,
    limit,
    window: window / 1000,
    ...(burst === undefined ? {} : { burst }),
    ...(align ? { align: typeof align === 'string' ? align : 'utc' } : {}),
    ...(algorithm === 'leaky_bucket' ? { maxDelay: maxDelay / 1000 } : {})
  }))
}

function runnable(sequence) {
  const changes = sequence.steps.filter((step) => step.do === 'limits').flatMap((step) => step.limits)
  return [...sequence.limits, ...changes].every(
    ({ window, maxDelay = 0 }) => Number.isInteger(window / 1000) && Number.isInteger(maxDelay / 1000)
  )
}

const ms = (micros) => Math.ceil(micros / 1000)

function check(decision, expect, where) {
  assert.equal(decision.allowed, expect.allowed, `${where}: allowed`)
  assert.equal(decision.policies.length, expect.policies.length, where)
  expect.policies.forEach((state, index) => {
    const { policy, ...found } = decision.policies[index]
    assert.equal(typeof policy, 'string')
    assert.deepEqual(
      found,
      {
        allowed: state.admits,
        limit: state.limit,
        remaining: state.remaining,
        resetAt: ms(state.resetAt),
        nextAt: ms(state.nextAt),
        retryAfterMs: state.retryAfter === null ? null : ms(state.retryAfter),
        delayMs: ms(state.delay)
      },
      `${where}: policy ${index}`
    )
  })
  const bound = decision.policies[expect.binding ?? 0]
  assert.equal(decision.policy, bound.policy, `${where}: the policy that binds`)
}

async function play(sequence) {
  const clock = new ManualClock(0)
  const name = `vectors.test ${named++}`
  let limiter = createRateLimiter({ name, clock, limits: optionsOf(sequence.limits) })
  const open = [limiter]
  for (const [index, step] of sequence.steps.entries()) {
    clock.set(step.at / 1000)
    const where = `step ${index} (${step.do})`
    if (step.do === 'check') check(await limiter.check('client', { cost: step.cost }), step.expect, where)
    else if (step.do === 'peek') check(await limiter.peek('client', { cost: step.cost }), step.expect, where)
    else if (step.do === 'refund') await limiter.refund('client', step.cost)
    else if (step.do === 'reset') await limiter.reset('client')
    else {
      // The same counters under other limits: another limiter of the same name, with the first one still there.
      limiter = createRateLimiter({ name, clock, limits: optionsOf(step.limits) })
      open.push(limiter)
    }
  }
  for (const limiter of open) await limiter.close()
}

const files = fs.existsSync(DIRECTORY)
  ? fs.readdirSync(DIRECTORY).filter((file) => file.endsWith('.json'))
  : []

test('the vectors are there, and they deny something', () => {
  assert.ok(files.length >= 6)
  assert.match(fs.readFileSync(path.join(DIRECTORY, files[0]), 'utf8'), /"allowed": false/)
})

for (const file of files) {
  const { sequences } = JSON.parse(fs.readFileSync(path.join(DIRECTORY, file), 'utf8'))
  for (const sequence of sequences) {
    test(`${file}: ${sequence.name}`, { skip: !runnable(sequence) && 'finer than a millisecond' }, () =>
      play(sequence)
    )
  }
}
