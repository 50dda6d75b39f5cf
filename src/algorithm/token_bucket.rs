//! Token bucket: starts full, refills steadily, holds at most the burst.
//!
//! At most burst + limit pass in any window. The level is kept in token-windows, tokens × window in microseconds: a
//! microsecond adds exactly `limit` of them and a token is exactly `window` of them, so that a refill is a whole number
//! and no fraction is ever lost or made up, however often a client asks.

use super::{Counter, first_instant, largest_amount};
use crate::policy::Policy;
use crate::whole::{ceil, floor};

/// State of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenBucket {
    /// Tokens × window at `time`.
    pub level: f64,
    /// When `level` was true.
    pub time: f64,
}

impl TokenBucket {
    /// A full bucket.
    #[inline]
    pub(super) fn full(policy: &Policy, now: f64) -> Self {
        Self { level: policy.capacity * policy.window, time: now }
    }

    #[inline]
    fn level(self, policy: &Policy, now: f64) -> f64 {
        let elapsed = (now - self.time).max(0.0);
        (self.level + elapsed * policy.limit).min(policy.capacity * policy.window)
    }

    /// When the level will be `wanted`, at most the capacity.
    #[inline]
    fn instant_of(self, policy: &Policy, wanted: f64, now: f64) -> f64 {
        let state = Self { time: self.time.min(now), ..self };
        let guess = now + ceil((wanted - state.level(policy, now)) / policy.limit);
        first_instant(guess, now, |instant| state.level(policy, instant) >= wanted)
    }
}

impl Counter for TokenBucket {
    #[inline]
    fn admits(&self, policy: &Policy, cost: f64, now: f64) -> bool {
        self.level(policy, now) >= cost * policy.window
    }

    #[inline]
    fn wait(&self, policy: &Policy, cost: f64, now: f64) -> f64 {
        if self.admits(policy, cost, now) {
            0.0
        } else {
            self.instant_of(policy, cost * policy.window, now) - now
        }
    }

    #[inline]
    fn remaining(&self, policy: &Policy, now: f64) -> f64 {
        let level = self.level(policy, now);
        largest_amount(floor(level / policy.window), |amount| level >= amount * policy.window)
    }

    #[inline]
    fn reset_at(&self, policy: &Policy, now: f64) -> f64 {
        let full = policy.capacity * policy.window;
        if self.level(policy, now) >= full { now } else { self.instant_of(policy, full, now) }
    }

    #[inline]
    fn is_ahead(&self, _policy: &Policy, now: f64) -> bool {
        self.time > now
    }

    #[inline]
    fn settle(&mut self, policy: &Policy, now: f64) {
        *self = Self { level: self.level(policy, now), time: now };
    }

    #[inline]
    fn take(&mut self, policy: &Policy, cost: f64, _now: f64) {
        self.level -= cost * policy.window;
    }

    fn give_back(&mut self, policy: &Policy, cost: f64, _since: Option<f64>, _now: f64) {
        self.level = (self.level + cost * policy.window).min(policy.capacity * policy.window);
    }
}
