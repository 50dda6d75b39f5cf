// Gives the cost of a request back when its response ends in a way that the limiter was told not to count.
// A client that leaves before the end counts as failed.
'use strict'

/**
 * Waits for the end of a response whose check is the last native decision.
 * @param {import('node:http').ServerResponse} raw
 * @param {{ charge(): object | null, refundCharge(receipt: object): void }} native
 * @param {boolean} skipFailed
 * @param {boolean} skipSuccessful
 */
function refundAfter(raw, native, skipFailed, skipSuccessful) {
  const receipt = native.charge()
  if (!receipt) return
  let settled = false
  const settle = (failed) => {
    if (settled) return
    settled = true
    if (failed ? skipFailed : skipSuccessful) native.refundCharge(receipt)
  }
  if (raw.destroyed) {
    settle(true)
    return
  }
  raw.once('finish', () => settle(raw.statusCode >= 400))
  raw.once('close', () => settle(true))
}

module.exports = { refundAfter }
