// A process ends by itself whatever limiters are left open (N01).
'use strict'

const assert = require('node:assert/strict')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { test } = require('node:test')

const { run } = require('./support/workers.js')

const CASES = {
  'an idle limiter': "sluicegate.createRateLimiter({ limit: 1, window: '1m' })",
  'a check':
    "sluicegate.createRateLimiter({ limit: 1, window: '1m' }).check('a').then(() => console.log('done'))",
  'a limiter that was closed': `
    const limiter = sluicegate.createRateLimiter({ limit: 1, window: '1m' })
    limiter.check('a').then(() => limiter.close()).then(() => limiter.close()).then(() => console.log('done'))`,
  'a named limiter': "sluicegate.createRateLimiter({ name: 'x', limit: 1, window: '1m' }).check('a')",
  'a rules file that is followed': 'sluicegate.createRateLimiter({ rules: RULES }).check("a")',
  'a Fastify app that was closed': `
    const app = require('fastify')()
    app.register(sluicegate.rateLimitPlugin, { limit: 1, window: '1m', rules: undefined })
    app.listen({ port: 0 }).then(() => app.inject('/')).then(() => app.close()).then(() => console.log('done'))`,
  'a leaky bucket without a request':
    "sluicegate.expressRateLimit({ limit: 1, window: '1m', algorithm: 'leaky_bucket' })"
}

for (const [what, source] of Object.entries(CASES)) {
  test(`N01 the process exits by itself with ${what}`, async (t) => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'sluicegate-'))
    t.after(() => fs.rmSync(directory, { recursive: true, force: true }))
    const rules = path.join(directory, 'rules.yaml')
    fs.writeFileSync(rules, 'tenants:\n  default:\n    default: { limit: 1, window: 1m }\n')
    const ended = await run(`const RULES = ${JSON.stringify(rules)}\n${source}`)
    assert.equal(ended.code, 0, ended.stderr)
    assert.equal(ended.signal, null, 'it had to be killed')
    if (source.includes("'done'")) assert.match(ended.stdout, /done/)
  })
}

test('N01 process.exit in the middle of checks is clean', async () => {
  const ended = await run(`
    const limiter = sluicegate.createRateLimiter({ limit: 1, window: '1m' })
    for (let n = 0; n < 1000; n++) limiter.check('k' + n)
    process.exit(3)`)
  assert.equal(ended.code, 3, ended.stderr)
  assert.equal(ended.stderr, '')
})
