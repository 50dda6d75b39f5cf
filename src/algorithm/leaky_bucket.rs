//! Leaky bucket: a queue that drains steadily; what is admitted waits for its turn.
//!
//! Admits when the queue has room for the cost and the wait for what stands before it is at most `max_delay`; the wait
//! is the decision's delay, so that one unit comes out each window / limit. The level is kept in token-windows, as in
//! the token bucket, and is exact for the same reason.

use super::{Counter, first_instant, largest_amount};
use crate::policy::Policy;
use crate::whole::{ceil, floor};

/// State of a leaky bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeakyBucket {
    /// Units in the queue × window at `time`.
    pub level: f64,
    /// When `level` was true.
    pub time: f64,
}

impl LeakyBucket {
    /// An empty queue.
    #[inline]
    pub(super) fn empty(now: f64) -> Self {
        Self { level: 0.0, time: now }
    }

    #[inline]
    fn level(self, policy: &Policy, now: f64) -> f64 {
        let elapsed = (now - self.time).max(0.0);
        self.drained(policy, elapsed).min(policy.capacity * policy.window)
    }

    #[inline]
    fn drained(self, policy: &Policy, elapsed: f64) -> f64 {
        (self.level - elapsed * policy.limit).max(0.0)
    }

    /// When the level will be down at `wanted`.
    #[inline]
    fn instant_of(self, policy: &Policy, wanted: f64, now: f64) -> f64 {
        let state = Self { time: self.time.min(now), ..self };
        let guess = now + ceil((state.level(policy, now) - wanted) / policy.limit);
        first_instant(guess, now, |instant| state.level(policy, instant) <= wanted)
    }

    /// The highest level at which `cost` is admitted.
    #[inline]
    fn highest(policy: &Policy, cost: f64) -> f64 {
        ((policy.capacity - cost) * policy.window).min(policy.max_delay * policy.limit)
    }
}

impl Counter for LeakyBucket {
    #[inline]
    fn admits(&self, policy: &Policy, cost: f64, now: f64) -> bool {
        self.level(policy, now) <= Self::highest(policy, cost)
    }

    #[inline]
    fn wait(&self, policy: &Policy, cost: f64, now: f64) -> f64 {
        if self.admits(policy, cost, now) {
            return 0.0;
        }
        self.instant_of(policy, Self::highest(policy, cost), now) - now
    }

    #[inline]
    fn remaining(&self, policy: &Policy, now: f64) -> f64 {
        let level = self.level(policy, now);
        let room = policy.capacity - level / policy.window;
        let admits =
            |amount: f64| amount <= policy.capacity && level <= Self::highest(policy, amount);
        if admits(1.0) { largest_amount(floor(room), admits) } else { 0.0 }
    }

    #[inline]
    fn reset_at(&self, policy: &Policy, now: f64) -> f64 {
        if self.level(policy, now) <= 0.0 { now } else { self.instant_of(policy, 0.0, now) }
    }

    #[inline]
    fn is_ahead(&self, policy: &Policy, now: f64) -> bool {
        self.time > now || self.drained(policy, now - self.time) > policy.capacity * policy.window
    }

    #[inline]
    fn settle(&mut self, policy: &Policy, now: f64) {
        *self = Self { level: self.level(policy, now), time: now };
    }

    #[inline]
    fn take(&mut self, policy: &Policy, cost: f64, _now: f64) {
        self.level += cost * policy.window;
    }

    fn give_back(&mut self, policy: &Policy, cost: f64, _since: Option<f64>, _now: f64) {
        self.level = (self.level - cost * policy.window).max(0.0);
    }

    #[inline]
    fn delay(&self, policy: &Policy, now: f64) -> f64 {
        let level = self.level(policy, now);
        if level > 0.0 { ceil(level / policy.limit) } else { 0.0 }
    }
}
