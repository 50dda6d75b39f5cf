//! Sliding window counter: two adjacent fixed windows, the older one weighted by how much of it still overlaps.
//!
//! Admits when prev × (1 − elapsed / window) + cur + cost ≤ limit. At most `limit` pass in an aligned window and fewer
//! than 2 × limit in any. The estimate takes the older window's requests as evenly spread (the form is Cloudflare's of
//! 2017); constant memory, no boundary burst.

use super::{Counter, first_instant, largest_amount};
use crate::policy::Policy;
use crate::whole::{ceil, floor};

/// State of a sliding window counter. The counts are `u32` so that the state stays at 16 bytes; a limit is at most 10⁹.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlidingWindowCounter {
    /// Units taken in the window before.
    pub prev: u32,
    /// Units taken in this window.
    pub cur: u32,
    /// This window's number since the epoch.
    pub number: f64,
}

/// A sliding window counter at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    prev: f64,
    cur: f64,
    number: f64,
    /// When this window began.
    start: f64,
    /// What is left of the window before in what counts: prev × (1 − elapsed / window).
    weighted: f64,
}

/// prev × (1 − elapsed / window), in this order.
#[inline]
fn weigh(prev: f64, elapsed: f64, window: f64) -> f64 {
    prev * (1.0 - elapsed / window)
}

impl SlidingWindowCounter {
    /// The number of the window that `now` lies in: floor(now / window). Mostly it is the one that is stored, which is told
    /// without a division: times are whole and below 2^53, so that the products are exact.
    #[inline]
    fn number_at(&self, policy: &Policy, now: f64) -> f64 {
        let start = self.number * policy.window;
        if start <= now && now < start + policy.window {
            self.number
        } else {
            floor(now / policy.window)
        }
    }
}

impl Counter for SlidingWindowCounter {
    type Standing = Standing;

    #[inline]
    fn at(&self, policy: &Policy, now: f64) -> Standing {
        let number = self.number_at(policy, now);
        let (prev, cur) = if number <= self.number {
            (self.prev, self.cur)
        } else if number == self.number + 1.0 {
            (self.cur, 0)
        } else {
            (0, 0)
        };
        let (prev, cur) = (f64::from(prev), f64::from(cur));
        let start = number * policy.window;
        // Nothing weighs nothing, whatever is left of its window, and a division less is 4 ns.
        let weighted = if prev > 0.0 { weigh(prev, now - start, policy.window) } else { 0.0 };
        Standing { prev, cur, number, start, weighted }
    }

    #[inline]
    fn admits(standing: &Standing, policy: &Policy, cost: f64) -> bool {
        standing.weighted + standing.cur + cost <= policy.limit
    }

    #[inline]
    fn take(standing: Standing, _policy: &Policy, cost: f64, _now: f64) -> Standing {
        Standing { cur: standing.cur + cost, ..standing }
    }

    #[inline]
    fn remaining(standing: &Standing, policy: &Policy) -> f64 {
        let estimate = standing.weighted + standing.cur;
        largest_amount(floor((policy.limit - estimate).max(0.0)), |amount| {
            estimate + amount <= policy.limit
        })
    }

    #[inline]
    fn wait(&self, standing: &Standing, policy: &Policy, cost: f64, now: f64) -> f64 {
        let &Standing { prev, cur, start, .. } = standing;
        let Policy { limit, window, .. } = *policy;
        let next = start + window;
        // Either this window's own units leave room once the older ones weigh less, or they have to weigh less themselves.
        let (from, counted, room) = if cur + cost <= limit {
            (start, prev, limit - cur - cost)
        } else {
            (next, cur, limit - cost)
        };
        // What is half a step of doubles above the limit is rounded down to it, which is 215 µs of an hour at 10⁹. Divided
        // last, a whole result stays whole: `1 - room / counted` would often be a microsecond too late.
        let room = room + (limit.next_up() - limit) / 2.0;
        let guess = from + ceil(window * (counted - room) / counted);
        let passes = move |instant: f64| {
            if instant < next {
                weigh(prev, instant - start, window) + cur + cost <= limit
            } else if instant < next + window {
                weigh(cur, instant - next, window) + 0.0 + cost <= limit
            } else {
                true
            }
        };
        first_instant(guess, now, passes) - now
    }

    #[inline]
    fn reset_at(&self, standing: &Standing, policy: &Policy, now: f64) -> f64 {
        if standing.cur > 0.0 {
            (standing.number + 2.0) * policy.window
        } else if standing.prev > 0.0 {
            (standing.number + 1.0) * policy.window
        } else {
            now
        }
    }

    #[inline]
    fn is_ahead(&self, standing: &Standing, _policy: &Policy, _now: f64) -> bool {
        self.number > standing.number
    }

    #[inline]
    fn write(&mut self, standing: &Standing, _policy: &Policy, _now: f64) {
        *self = Self {
            prev: to_count(standing.prev),
            cur: to_count(standing.cur),
            number: standing.number,
        };
    }

    fn give_back(&mut self, policy: &Policy, cost: f64, since: Option<f64>) {
        let (prev, cur) = (f64::from(self.prev), f64::from(self.cur));
        let window = since.map(|since| floor(since / policy.window));
        if window.is_none_or(|number| number >= self.number) {
            self.cur = to_count((cur - cost).max(0.0));
        }
        if window == Some(self.number - 1.0) {
            self.prev = to_count((prev - cost).max(0.0));
        } else if window.is_none() {
            self.prev = to_count((prev - (cost - cur).max(0.0)).max(0.0));
        }
    }
}

/// A whole amount from 0 to 10⁹ as it is stored.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "admitted amounts are whole and at most 10⁹"
)]
fn to_count(amount: f64) -> u32 {
    amount as u32
}
