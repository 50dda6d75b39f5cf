// Loads the native addon, one file for the whole process: other copies of this package and worker threads take the one
// that the first copy loaded, because counters in memory are shared only inside one native image.
'use strict'

const path = require('node:path')
const { getEnvironmentData, setEnvironmentData } = require('node:worker_threads')
const { version } = require('../package.json')

const SHARED = Symbol.for('sluicegate.addon')
const ENVIRONMENT_DATA = 'sluicegate.addon'

function load() {
  const shared = globalThis[SHARED]
  if (shared !== undefined) {
    if (shared.version === version) return shared.binding
    sayNotShared(shared)
    return requireOwn()
  }
  const parent = getEnvironmentData(ENVIRONMENT_DATA)
  if (parent === undefined) return share(requireOwn(), ownPath())
  if (parent.version !== version) {
    sayNotShared(parent)
    return share(requireOwn(), ownPath())
  }
  try {
    return share(require(parent.path), parent.path)
  } catch {
    // The main thread's copy went away, as when a bundle was moved; what is beside us is the same version.
    return share(requireOwn(), ownPath())
  }
}

/** Makes this environment's binding the one that later copies and the workers of this thread use. */
function share(binding, file) {
  Object.defineProperty(globalThis, SHARED, { value: { version, path: file, binding }, configurable: true })
  if (getEnvironmentData(ENVIRONMENT_DATA) === undefined) {
    setEnvironmentData(ENVIRONMENT_DATA, { version, path: file })
  }
  return binding
}

function ownPath() {
  return path.join(__dirname, '..', 'binding.js')
}

function requireOwn() {
  try {
    return require('../binding.js')
  } catch (cause) {
    throw missing(cause)
  }
}

function sayNotShared(other) {
  process.emitWarning(
    `sluicegate ${version} (${path.dirname(ownPath())}) and ${other.version} (${path.dirname(other.path)}) ` +
      'are both loaded: limiters of the two do not share counters, not even under one name. ' +
      'Install one version (npm ls sluicegate) to make them share',
    { type: 'SluicegateWarning', code: 'SLUICEGATE_TWO_VERSIONS' }
  )
}

/** Says which file was looked for, why it did not load, and what to do about it. */
function missing(cause) {
  const target = [process.platform, process.arch, libc()].filter(Boolean).join('-')
  const reasons = reasonsOf(cause)
  const why = reasons.length === 0 ? '' : ` It was found and did not load: ${reasons.join('; ')}.`
  const error = new Error(
    `sluicegate has no native addon for ${target}: neither the file sluicegate.${target}.node beside ` +
      `${ownPath()} nor the package sluicegate-${target} could be loaded.${why} If npm left the package out ` +
      '(a lockfile made on another system, --omit=optional), remove node_modules and package-lock.json and ' +
      'install again on this system; from a clone, run `npm run build`',
    { cause }
  )
  error.code = 'ERR_SLUICEGATE_ADDON_MISSING'
  return error
}

function libc() {
  if (process.platform === 'win32') return 'msvc'
  if (process.platform !== 'linux') return ''
  return process.report.getReport().header.glibcVersionRuntime === undefined ? 'musl' : 'gnu'
}

/** Why a file that is there did not load (a glibc too old, a wrong architecture): the causes, without "not found". */
function reasonsOf(cause) {
  const reasons = []
  for (let error = cause, depth = 0; error != null && depth < 32; error = error.cause, depth++) {
    const known =
      error.code !== 'MODULE_NOT_FOUND' && !/native binding|^Cannot find module/i.test(error.message)
    if (known && error.message) reasons.push(String(error.message).split('\n')[0])
  }
  return reasons
}

const binding = load()

/**
 * The numbers of the last native call in this thread; contract: src/node. Every call overwrites them, so they are read
 * before anything else can run.
 */
const output = new Float64Array(binding.OUTPUT_LENGTH)

module.exports = { ManualClock: binding.ManualClock, NativeLimiter: binding.NativeLimiter, output }
