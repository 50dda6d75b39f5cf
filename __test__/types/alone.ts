// A project with neither Fastify nor Express, and without skipLibCheck.
import { createServer } from 'node:http'
import { createRateLimiter, DeniedError, expressRateLimit, ManualClock, type Decision } from 'sluicegate'

const clock = new ManualClock(0)
const limiter = createRateLimiter({
  limits: [
    { limit: 10, window: '1s' },
    { limit: 1000, window: '1h', algorithm: 'token_bucket', burst: 50, name: 'hourly' }
  ],
  keyExtractor: async (req) => req.user.id,
  clock
})

async function use(): Promise<number | null> {
  const decision: Decision = await limiter.check('user:42', { cost: 3 })
  const state = decision.policies[0]
  await limiter.refund('user:42')
  await limiter.block('user:42', 60_000, 'spam')
  const unblocked: boolean = await limiter.unblock('user:42')
  return unblocked && state !== undefined ? state.retryAfterMs : decision.retryAfterMs
}

const guard = expressRateLimit({ limit: 5, window: 1000, onDenied: 'throw' })
createServer((req, res) =>
  guard(req, res, (error) => {
    if (error instanceof DeniedError) res.statusCode = error.statusCode
    res.end()
  })
)

// @ts-expect-error a window has a unit
createRateLimiter({ limit: 1, window: '10 apples' })
// @ts-expect-error an option that does not exist
createRateLimiter({ limit: 1, window: 1000, max: 3 })
// @ts-expect-error an algorithm that does not exist
createRateLimiter({ limit: 1, window: 1000, algorithm: 'gcra' })

export { use }
