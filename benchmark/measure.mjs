// Interleaved measurement: all subjects run in every round, in turn, so that what the machine does besides falls on all
// of them alike. Figures are medians over the rounds; a ratio is the median of the rounds' own ratios, with a 95 % bound
// from its order statistics (binomial, no assumption about the noise).

/**
 * @param {Record<string, (count: number) => unknown>} subjects each does `count` operations
 * @param {{ count: number, rounds: number, warmup: number }} options
 * @returns {Promise<Record<string, number[]>>} nanoseconds an operation, by subject and round
 */
export async function interleave(subjects, { count, rounds, warmup }) {
  const names = Object.keys(subjects)
  const times = Object.fromEntries(names.map((name) => [name, []]))
  for (let round = -warmup; round < rounds; round++) {
    // Another order in every round: whoever comes after a garbage collection is not always the same.
    const order = names.map((_, index) => names[(index + round + warmup) % names.length])
    for (const name of order) {
      const start = process.hrtime.bigint()
      await subjects[name](count)
      const elapsed = Number(process.hrtime.bigint() - start) / count
      if (round >= 0) times[name].push(elapsed)
    }
  }
  return times
}

export function median(values) {
  return quantile(values, 0.5)
}

function quantile(values, at) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(at * (sorted.length - 1))))]
}

/** The ratio of two subjects' times, round by round: its median and its 95 % bounds. */
export function ratio(ours, theirs) {
  const ratios = ours.map((time, round) => time / theirs[round])
  const half = 0.98 / Math.sqrt(ratios.length)
  return { median: median(ratios), low: quantile(ratios, 0.5 - half), high: quantile(ratios, 0.5 + half) }
}
