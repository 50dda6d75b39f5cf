// Runs source text in a worker thread or in a process of its own, with `sluicegate` at hand.
'use strict'

const { spawn } = require('node:child_process')
const path = require('node:path')
const { Worker } = require('node:worker_threads')

const INDEX = path.join(__dirname, '..', '..')

/** The text that makes `sluicegate` and, in a worker, `parentPort` and `workerData` known. */
const PRELUDE = `
'use strict'
const { parentPort, workerData } = require('node:worker_threads')
const sluicegate = require(${JSON.stringify(INDEX)})
`

function startWorker(source, workerData) {
  return new Worker(PRELUDE + source, { eval: true, workerData })
}

/** A process of its own: what it printed, how it ended, and after how many milliseconds. */
function run(source, { args = [], timeout = 10_000, prelude = true } = {}) {
  return new Promise((resolve) => {
    const started = performance.now()
    const child = spawn(process.execPath, [...args, '-e', (prelude ? PRELUDE : '') + source], {
      stdio: ['ignore', 'pipe', 'pipe']
    })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk) => (stdout += chunk))
    child.stderr.on('data', (chunk) => (stderr += chunk))
    const timer = setTimeout(() => child.kill('SIGKILL'), timeout)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      resolve({ code, signal, stdout, stderr, ms: performance.now() - started })
    })
  })
}

module.exports = { INDEX, run, startWorker }
