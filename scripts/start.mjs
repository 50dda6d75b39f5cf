// `npm start`: the Fastify example, from a clone in whatever state it is.
import { build, install, main } from './steps.mjs'

await main(async () => {
  install()
  build()
  // In this process, so that Ctrl-C reaches the server itself.
  await import('../examples/fastify.mjs')
})
