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

impl SlidingWindowCounter {
    #[inline]
    fn at(self, policy: &Policy, now: f64) -> Self {
        let number = floor(now / policy.window);
        if number <= self.number {
            Self { number, ..self }
        } else if number == self.number + 1.0 {
            Self { prev: self.cur, cur: 0, number }
        } else {
            Self { prev: 0, cur: 0, number }
        }
    }

    /// What counts at `now`, of a state that was brought to `now`.
    #[inline]
    fn estimate(self, policy: &Policy, now: f64) -> f64 {
        let elapsed = now - self.number * policy.window;
        f64::from(self.prev) * (1.0 - elapsed / policy.window) + f64::from(self.cur)
    }
}

impl Counter for SlidingWindowCounter {
    #[inline]
    fn admits(&self, policy: &Policy, cost: f64, now: f64) -> bool {
        self.at(policy, now).estimate(policy, now) + cost <= policy.limit
    }

    #[inline]
    fn wait(&self, policy: &Policy, cost: f64, now: f64) -> f64 {
        if self.admits(policy, cost, now) {
            return 0.0;
        }
        let state = self.at(policy, now);
        let cur = f64::from(state.cur);
        let start = state.number * policy.window;
        // Either this window's own units leave room once the older ones weigh less, or they have to weigh less themselves.
        let (start, counted, room) = if cur + cost <= policy.limit {
            (start, f64::from(state.prev), policy.limit - cur - cost)
        } else {
            (start + policy.window, cur, policy.limit - cost)
        };
        let guess = start + ceil(policy.window * (1.0 - room / counted));
        first_instant(guess, now, |instant| state.admits(policy, cost, instant)) - now
    }

    #[inline]
    fn remaining(&self, policy: &Policy, now: f64) -> f64 {
        let estimate = self.at(policy, now).estimate(policy, now);
        largest_amount(floor((policy.limit - estimate).max(0.0)), |amount| {
            estimate + amount <= policy.limit
        })
    }

    #[inline]
    fn reset_at(&self, policy: &Policy, now: f64) -> f64 {
        let state = self.at(policy, now);
        if state.cur > 0 {
            (state.number + 2.0) * policy.window
        } else if state.prev > 0 {
            (state.number + 1.0) * policy.window
        } else {
            now
        }
    }

    #[inline]
    fn is_ahead(&self, policy: &Policy, now: f64) -> bool {
        self.number > floor(now / policy.window)
    }

    #[inline]
    fn settle(&mut self, policy: &Policy, now: f64) {
        *self = self.at(policy, now);
    }

    #[inline]
    fn take(&mut self, _policy: &Policy, cost: f64, _now: f64) {
        self.cur = to_count(f64::from(self.cur) + cost);
    }

    fn give_back(&mut self, policy: &Policy, cost: f64, since: Option<f64>, _now: f64) {
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
