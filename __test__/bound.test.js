// The memory of the embedded store is bounded by maxKeys, whoever asks and however often.
'use strict'

const assert = require('node:assert/strict')
const test = require('node:test')

const { createRateLimiter } = require('..')

const MAX_KEYS = 100_000
const KEYS = 10_000_000
/** What 100,000 states of 48 bytes in half-full tables need is a tenth of it; the rest is V8's, for ten million strings. */
const MOST_GROWTH = 200e6

test('K21 ten million random keys stay within the memory of maxKeys, and a limited client stays limited', (t) => {
  const limiter = createRateLimiter({ limit: 5, window: '1d', maxKeys: MAX_KEYS })
  for (let index = 0; index < 5; index++) assert.equal(limiter.checkSync('limited').allowed, true)
  const before = process.memoryUsage.rss()
  let most = before
  for (let index = 0; index < KEYS; index++) {
    limiter.checkSync(`key ${Math.random()}`)
    if (index % 100_000 === 0) most = Math.max(most, process.memoryUsage.rss())
  }
  const { keys, evicted } = limiter.stats()
  t.diagnostic(
    `RSS ${Math.round(before / 1e6)} MB before, ${Math.round(most / 1e6)} MB at most, ${keys} keys held, ${evicted} evicted`
  )
  assert.ok(keys <= MAX_KEYS, `${keys} keys`)
  assert.ok(most - before < MOST_GROWTH, `${most - before} bytes more`)
  const { outcome } = limiter.checkSync('limited')
  assert.equal(outcome, 'denied')
})
