// A Fastify server that lets each address through five times in ten seconds. PORT chooses another port than 3000.
import Fastify from 'fastify'
import { rateLimitPlugin } from 'sluicegate'

const app = Fastify()
await app.register(rateLimitPlugin, { limit: 5, window: '10s' })

app.get('/', async (request) => ({ hello: 'world', remaining: request.rateLimit.remaining }))

const url = await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 3000) })
console.log(
  `Listening on ${url}: 5 requests per 10 seconds and address. Try six times:\n\n  curl -i ${url}/\n`
)
