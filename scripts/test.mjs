// `npm test`: all tests, from a clone in whatever state it is. `node scripts/test.mjs rust` or `node` runs one kind alone.
import { Failure, build, install, main, testNode, testRust } from './steps.mjs'

await main(() => {
  const [only] = process.argv.slice(2)
  const failed = []
  if (only !== 'rust') {
    install()
    build()
  }
  if (only !== 'node' && !testRust()) failed.push('the Rust tests')
  if (only !== 'rust' && !testNode()) failed.push('the Node tests')
  if (failed.length > 0) throw new Failure(`failed: ${failed.join(', ')}`)
})
