//! Fixed window: one count that starts again when the window ends.
//!
//! The window starts with its first admitted request, or stands on the UTC boundary with `align: 'utc'`. At most `limit`
//! pass in a window, and at most 2 × limit − 1 in any span of one window's length, whose halves lie in two windows.

use super::Counter;
use crate::policy::Policy;
use crate::whole::floor;

/// State of a fixed window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FixedWindow {
    /// Units taken in this window.
    pub count: f64,
    /// When the window ends; a window that ended counts nothing.
    pub end: f64,
}

impl Counter for FixedWindow {
    /// A window that ended is as if it had never been; one that ends too far ahead is from before the clock went back.
    type Standing = Self;

    #[inline]
    fn at(&self, policy: &Policy, now: f64) -> Self {
        if now >= self.end {
            Self::default()
        } else {
            Self { count: self.count, end: self.end.min(now + policy.window) }
        }
    }

    #[inline]
    fn admits(standing: &Self, policy: &Policy, cost: f64) -> bool {
        standing.count + cost <= policy.limit
    }

    #[inline]
    fn take(standing: Self, policy: &Policy, cost: f64, now: f64) -> Self {
        let end = if standing.end > 0.0 {
            standing.end
        } else if policy.aligned {
            floor(now / policy.window) * policy.window + policy.window
        } else {
            now + policy.window
        };
        Self { count: standing.count + cost, end }
    }

    #[inline]
    fn remaining(standing: &Self, policy: &Policy) -> f64 {
        (policy.limit - standing.count).max(0.0)
    }

    #[inline]
    fn wait(&self, standing: &Self, _policy: &Policy, _cost: f64, now: f64) -> f64 {
        standing.end - now
    }

    #[inline]
    fn reset_at(&self, standing: &Self, _policy: &Policy, now: f64) -> f64 {
        if standing.count > 0.0 { standing.end } else { now }
    }

    #[inline]
    fn is_ahead(&self, _standing: &Self, policy: &Policy, now: f64) -> bool {
        self.end > now + policy.window
    }

    #[inline]
    fn write(&mut self, standing: &Self, _policy: &Policy, _now: f64) {
        *self = *standing;
    }

    fn give_back(&mut self, policy: &Policy, cost: f64, since: Option<f64>) {
        // What was taken in an earlier window is not counted in this one.
        if since.is_none_or(|since| since >= self.end - policy.window) {
            self.count = (self.count - cost).max(0.0);
        }
    }
}
