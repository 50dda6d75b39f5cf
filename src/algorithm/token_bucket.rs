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

    /// When the level, which is `level` now, will be `wanted`, at most the capacity.
    #[inline]
    fn instant_of(self, policy: &Policy, level: f64, wanted: f64, now: f64) -> f64 {
        let state = Self { time: self.time.min(now), ..self };
        let guess = now + ceil((wanted - level) / policy.limit);
        first_instant(guess, now, |instant| state.level(policy, instant) >= wanted)
    }
}

impl Counter for TokenBucket {
    /// The level.
    type Standing = f64;

    #[inline]
    fn at(&self, policy: &Policy, now: f64) -> f64 {
        self.level(policy, now)
    }

    #[inline]
    fn admits(level: &f64, policy: &Policy, cost: f64) -> bool {
        *level >= cost * policy.window
    }

    #[inline]
    fn take(level: f64, policy: &Policy, cost: f64, _now: f64) -> f64 {
        level - cost * policy.window
    }

    #[inline]
    fn remaining(level: &f64, policy: &Policy) -> f64 {
        largest_amount(floor(*level / policy.window), |amount| *level >= amount * policy.window)
    }

    #[inline]
    fn wait(&self, level: &f64, policy: &Policy, cost: f64, now: f64) -> f64 {
        self.instant_of(policy, *level, cost * policy.window, now) - now
    }

    #[inline]
    fn reset_at(&self, level: &f64, policy: &Policy, now: f64) -> f64 {
        let full = policy.capacity * policy.window;
        if *level >= full { now } else { self.instant_of(policy, *level, full, now) }
    }

    #[inline]
    fn is_ahead(&self, _level: &f64, _policy: &Policy, now: f64) -> bool {
        self.time > now
    }

    #[inline]
    fn write(&mut self, level: &f64, _policy: &Policy, now: f64) {
        *self = Self { level: *level, time: now };
    }

    fn give_back(&mut self, policy: &Policy, cost: f64, _since: Option<f64>) {
        self.level = (self.level + cost * policy.window).min(policy.capacity * policy.window);
    }
}
