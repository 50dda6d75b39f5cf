// The embedded limiter beside express-rate-limit's MemoryStore and rate-limiter-flexible's memory, in one run.
//
//   node benchmark/memory.mjs            about two minutes
//   node benchmark/memory.mjs --quick    a quarter of that
//
// Every field of every answer is read. Keys are fresh strings: none has a hash that V8 computed before. A fast limiter
// that counts wrong fails the run.
import { setup } from './setup.mjs'
import { interleave, median, ratio } from './measure.mjs'

const quick = process.argv.includes('--quick')
const { sluicegate, peer } = setup()
const { createRateLimiter } = sluicegate
const { MemoryStore } = peer('express-rate-limit')
const { RateLimiterMemory } = peer('rate-limiter-flexible')

const KEYS = 10_000
const PLENTY = 1_000_000_000
const WINDOW_MS = 3_600_000

/** What was read, so that nothing is optimised away. */
let sink = 0

const keyOf = (index) => 'user:' + index + ':f81d4fae-7dec-11d0'

function readDecision(decision) {
  const [policy] = decision.policies
  sink +=
    decision.limit +
    decision.remaining +
    decision.resetAt +
    decision.nextAt +
    decision.retryAfterMs +
    decision.delayMs +
    decision.outcome.length +
    decision.policy.length +
    policy.limit +
    policy.remaining +
    policy.resetAt +
    policy.nextAt +
    policy.retryAfterMs +
    policy.delayMs
  return decision.allowed
}

/** Every subject takes a count of operations and gives how many were allowed. */
function sluicegateSync(algorithm, limit) {
  const limiter = createRateLimiter({ limit, window: WINDOW_MS, algorithm })
  return (count) => {
    let allowed = 0
    for (let index = 0; index < count; index++) if (readDecision(limiter.checkSync(keyOf(index)))) allowed++
    return allowed
  }
}

function sluicegatePromise(algorithm, limit) {
  const limiter = createRateLimiter({ limit, window: WINDOW_MS, algorithm })
  return async (count) => {
    let allowed = 0
    for (let index = 0; index < count; index++) if (readDecision(await limiter.check(keyOf(index)))) allowed++
    return allowed
  }
}

function expressRateLimitStore(limit) {
  const store = new MemoryStore()
  store.init({ windowMs: WINDOW_MS })
  return async (count) => {
    let allowed = 0
    for (let index = 0; index < count; index++) {
      const { totalHits, resetTime } = await store.increment(keyOf(index))
      sink += totalHits + resetTime.getTime()
      if (totalHits <= limit) allowed++
    }
    return allowed
  }
}

function rateLimiterFlexible(limit) {
  const limiter = new RateLimiterMemory({ points: limit, duration: WINDOW_MS / 1000 })
  return async (count) => {
    let allowed = 0
    for (let index = 0; index < count; index++) {
      let answer
      try {
        answer = await limiter.consume(keyOf(index))
        allowed++
      } catch (denied) {
        answer = denied
      }
      sink += answer.remainingPoints + answer.msBeforeNext + answer.consumedPoints
    }
    return allowed
  }
}

const PEERS = {
  'express-rate-limit MemoryStore': expressRateLimitStore,
  'rate-limiter-flexible memory': rateLimiterFlexible
}
const OURS = {
  'checkSync fixed_window': (limit) => sluicegateSync('fixed_window', limit),
  'checkSync sliding_window_counter': (limit) => sluicegateSync('sliding_window_counter', limit),
  'checkSync token_bucket': (limit) => sluicegateSync('token_bucket', limit),
  'check fixed_window': (limit) => sluicegatePromise('fixed_window', limit),
  'check sliding_window_counter': (limit) => sluicegatePromise('sliding_window_counter', limit)
}
/** The goals: the time of ours over that of the peer. */
const GOALS = { 'express-rate-limit MemoryStore': 1.0, 'rate-limiter-flexible memory': 0.6 }
const HELD_TO = new Set(['checkSync fixed_window', 'checkSync sliding_window_counter'])

/** A limit of 3 admits three of ten requests a key, whoever counts. */
async function countsRight() {
  for (const [name, make] of Object.entries({ ...PEERS, ...OURS })) {
    const subject = make(3)
    let allowed = 0
    for (let round = 0; round < 10; round++) allowed += await subject(100)
    const right = allowed === 300
    console.log(
      `${right ? '✓' : '✗'} ${name}: ${allowed} of 1,000 requests admitted at a limit of 3 for 100 keys`
    )
    if (!right) process.exitCode = 1
  }
}

async function speed(title, limit, fill) {
  console.log(`\n## ${title}: ${KEYS.toLocaleString('en')} keys, fresh strings\n`)
  const subjects = {}
  for (const [name, make] of Object.entries({ ...PEERS, ...OURS })) {
    subjects[name] = make(limit)
    for (let round = 0; round < fill; round++) await subjects[name](KEYS)
  }
  const rounds = quick ? 40 : 160
  const times = await interleave(subjects, { count: KEYS, rounds, warmup: 10 })
  const peers = Object.keys(PEERS)
  console.log(`| ns an operation | median | ${peers.map((name) => `× ${name}`).join(' | ')} |`)
  console.log(`|---|---|${peers.map(() => '---|').join('')}`)
  for (const name of Object.keys(subjects)) {
    const cells = peers.map((other) => {
      if (name in PEERS) return ''
      const { median: middle, low, high } = ratio(times[name], times[other])
      const bound = `${middle.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`
      if (!HELD_TO.has(name)) return bound
      return `${bound} ${middle <= GOALS[other] ? '✓' : '✗'} ≤ ${GOALS[other].toFixed(1)}`
    })
    console.log(`| ${name} | ${median(times[name]).toFixed(0)} | ${cells.join(' | ')} |`)
  }
}

async function growth() {
  const sizes = quick ? [1e3, 1e4, 1e5, 1e6] : [1e3, 1e4, 1e5, 1e6, 1e7]
  console.log('\n## Growth: checkSync, sliding_window_counter, random keys of a full store\n')
  console.log('| keys | ns a check | × the smallest | bytes a key |')
  console.log('|---|---|---|---|')
  let smallest
  for (const size of sizes) {
    const limiter = createRateLimiter({ limit: PLENTY, window: WINDOW_MS, maxKeys: size * 2 })
    const { residentMemory, time } = fillAndMeasure(limiter, size)
    smallest ??= time
    const goal = size === 1e6 ? ` ${residentMemory <= 120 ? '✓' : '✗'} ≤ 120` : ''
    const within = time / smallest
    const bytes = size < 1e5 ? '' : residentMemory.toFixed(0) + goal
    const cost = `${within.toFixed(2)} ${within <= 3 ? '✓' : '✗'} ≤ 3`
    console.log(`| ${size.toLocaleString('en')} | ${time.toFixed(0)} | ${cost} | ${bytes} |`)
    await limiter.close()
  }
}

function fillAndMeasure(limiter, size) {
  globalThis.gc?.()
  const before = process.memoryUsage.rss()
  for (let index = 0; index < size; index++) limiter.checkSync('k' + index)
  globalThis.gc?.()
  const residentMemory = (process.memoryUsage.rss() - before) / size
  const checks = 400_000
  // A walk over all keys without order: every check meets another part of memory.
  const step = (2_654_435_761 % size) | 1
  const start = process.hrtime.bigint()
  for (let index = 0, at = 0; index < checks; index++, at = (at + step) % size) limiter.checkSync('k' + at)
  return { residentMemory, time: Number(process.hrtime.bigint() - start) / checks }
}

console.log(`Node ${process.version}, ${process.arch}, ${process.platform}\n`)
await countsRight()
await speed('All admitted', PLENTY, 1)
await speed('Mostly denied', 3, 3)
await growth()
if (!Number.isFinite(sink)) throw new Error('an answer held no number')
process.exit()
