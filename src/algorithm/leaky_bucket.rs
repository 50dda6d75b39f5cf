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
    fn drained(self, policy: &Policy, now: f64) -> f64 {
        let elapsed = (now - self.time).max(0.0);
        (self.level - elapsed * policy.limit).max(0.0)
    }

    #[inline]
    fn level(self, policy: &Policy, now: f64) -> f64 {
        self.drained(policy, now).min(policy.capacity * policy.window)
    }

    /// When the level, which is `level` now, will be down at `wanted`. What was stored above a capacity that was lowered
    /// since does not count any more.
    #[inline]
    fn instant_of(policy: &Policy, level: f64, wanted: f64, now: f64) -> f64 {
        let state = Self { level, time: now };
        let guess = now + ceil((level - wanted) / policy.limit);
        first_instant(guess, now, |instant| state.level(policy, instant) <= wanted)
    }

    /// The highest level at which `cost` is admitted.
    #[inline]
    fn highest(policy: &Policy, cost: f64) -> f64 {
        ((policy.capacity - cost) * policy.window).min(policy.max_delay * policy.limit)
    }
}

impl Counter for LeakyBucket {
    /// The level.
    type Standing = f64;

    #[inline]
    fn at(&self, policy: &Policy, now: f64) -> f64 {
        self.level(policy, now)
    }

    #[inline]
    fn admits(level: &f64, policy: &Policy, cost: f64) -> bool {
        *level <= Self::highest(policy, cost)
    }

    #[inline]
    fn take(level: f64, policy: &Policy, cost: f64, _now: f64) -> f64 {
        level + cost * policy.window
    }

    #[inline]
    fn remaining(level: &f64, policy: &Policy) -> f64 {
        let room = policy.capacity - *level / policy.window;
        let admits =
            |amount: f64| amount <= policy.capacity && *level <= Self::highest(policy, amount);
        if admits(1.0) { largest_amount(floor(room), admits) } else { 0.0 }
    }

    #[inline]
    fn delay(level: &f64, policy: &Policy) -> f64 {
        if *level > 0.0 { ceil(*level / policy.limit) } else { 0.0 }
    }

    #[inline]
    fn wait(&self, level: &f64, policy: &Policy, cost: f64, now: f64) -> f64 {
        Self::instant_of(policy, *level, Self::highest(policy, cost), now) - now
    }

    #[inline]
    fn reset_at(&self, level: &f64, policy: &Policy, now: f64) -> f64 {
        if *level <= 0.0 { now } else { Self::instant_of(policy, *level, 0.0, now) }
    }

    #[inline]
    fn is_ahead(&self, level: &f64, policy: &Policy, now: f64) -> bool {
        self.time > now || self.drained(policy, now) > *level
    }

    #[inline]
    fn write(&mut self, level: &f64, _policy: &Policy, now: f64) {
        *self = Self { level: *level, time: now };
    }

    fn give_back(&mut self, policy: &Policy, cost: f64, _since: Option<f64>) {
        self.level = (self.level - cost * policy.window).max(0.0);
    }
}
