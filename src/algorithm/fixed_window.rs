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

impl FixedWindow {
    #[inline]
    fn at(self, policy: &Policy, now: f64) -> Self {
        if now >= self.end {
            Self::default()
        } else {
            Self { end: self.end.min(now + policy.window), ..self }
        }
    }
}

impl Counter for FixedWindow {
    #[inline]
    fn admits(&self, policy: &Policy, cost: f64, now: f64) -> bool {
        self.at(policy, now).count + cost <= policy.limit
    }

    #[inline]
    fn wait(&self, policy: &Policy, cost: f64, now: f64) -> f64 {
        let Self { count, end } = self.at(policy, now);
        if count + cost <= policy.limit { 0.0 } else { end - now }
    }

    #[inline]
    fn remaining(&self, policy: &Policy, now: f64) -> f64 {
        (policy.limit - self.at(policy, now).count).max(0.0)
    }

    #[inline]
    fn reset_at(&self, policy: &Policy, now: f64) -> f64 {
        let Self { count, end } = self.at(policy, now);
        if count > 0.0 { end } else { now }
    }

    #[inline]
    fn is_ahead(&self, policy: &Policy, now: f64) -> bool {
        self.end > now + policy.window
    }

    #[inline]
    fn settle(&mut self, policy: &Policy, now: f64) {
        *self = self.at(policy, now);
    }

    #[inline]
    fn take(&mut self, policy: &Policy, cost: f64, now: f64) {
        if self.end == 0.0 {
            let start =
                if policy.aligned { floor(now / policy.window) * policy.window } else { now };
            self.end = start + policy.window;
        }
        self.count += cost;
    }

    fn give_back(&mut self, policy: &Policy, cost: f64, since: Option<f64>, _now: f64) {
        // What was taken in an earlier window is not counted in this one.
        if since.is_none_or(|since| since >= self.end - policy.window) {
            self.count = (self.count - cost).max(0.0);
        }
    }
}
