// A project with Fastify: the plugin registers, and instance, request and route config know it.
import fastify from 'fastify'
import { rateLimitPlugin, type RouteOptions } from 'sluicegate'

export async function build() {
  const app = fastify()
  await app.register(rateLimitPlugin, { limit: 100, window: '1m', hook: 'preHandler', headers: ['draft-8'] })
  // @ts-expect-error a hook that does not exist
  await app.register(rateLimitPlugin, { limit: 100, window: '1m', hook: 'onSend' })

  const strict: RouteOptions = { limit: 5, window: '1m', onDenied: 'throw' }
  app.post('/login', { config: { sluicegate: strict } }, async (request) => request.rateLimit?.remaining)
  app.get('/health', { config: { sluicegate: false } }, async () => 'ok')
  app.setNotFoundHandler({ preHandler: app.sluicegate() }, async () => 'nothing')
  app.get('/reset', async (request) => app.sluicegate.limiter.reset(await app.sluicegate.keyOf(request)))

  // @ts-expect-error an option of the whole limiter
  const whole: RouteOptions = { maxKeys: 5 }
  return { app, whole }
}
