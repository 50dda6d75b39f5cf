// A project with Express: the middleware mounts, and the request knows its decision.
import express, { type Request, type Response } from 'express'
import { expressRateLimit } from 'sluicegate'

const app = express()
const limiter = expressRateLimit<Request, Response>({
  limit: (req) => (req.get('x-plan') === 'paid' ? 100 : 10),
  window: '1m',
  skip: (req) => req.path === '/health',
  onDenied: (req, res, decision) => res.status(429).json({ wait: decision.retryAfterMs })
})
app.use(limiter)
app.use('/api', expressRateLimit({ limit: 5, window: '1s' }))
app.get('/', (req, res) => {
  res.json(req.rateLimit?.policies)
})
app.post('/reset', async (req, res) => {
  await limiter.limiter.reset(await limiter.keyOf(req))
  res.end()
})
