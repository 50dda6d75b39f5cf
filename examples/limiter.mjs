// The limiter without a web framework: jobs of two users, who each may start ten at once and one more every 200 ms.
// A large job costs more than a small one.
import { setTimeout as sleep } from 'node:timers/promises'
import { createRateLimiter } from 'sluicegate'

const limiter = createRateLimiter({ algorithm: 'token_bucket', limit: 5, window: '1s', burst: 10 })

async function start(user, job, cost) {
  const decision = await limiter.check(user, { cost })
  if (decision.allowed) console.log(`${user} ${job}: started, ${decision.remaining} left`)
  else console.log(`${user} ${job}: denied, again in ${decision.retryAfterMs} ms`)
  return decision
}

await start('user:1', 'small', 1)
await start('user:1', 'large', 8)
await start('user:2', 'large', 8)

const denied = await start('user:1', 'large', 8)
await sleep(denied.retryAfterMs)
await start('user:1', 'large', 8)
