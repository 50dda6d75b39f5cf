//! Sliding window log: the time and cost of every admitted request; exact.
//!
//! Admits when what was admitted in (now − window, now], plus cost, is at most the limit. An entry holds a running
//! total, so that what a span of time holds, and which entry has to leave before a cost fits, are binary searches.

use std::collections::VecDeque;

use super::Counter;
use crate::policy::Policy;

/// Requests admitted at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    time: f64,
    /// Units admitted since the log began, this entry's included.
    total: f64,
}

/// State of a sliding window log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SlidingWindowLog {
    /// Oldest first; times rise.
    entries: VecDeque<Entry>,
    /// The running total before the oldest entry.
    before: f64,
}

/// Where running totals start again, far below what a double counts exactly.
const TOTAL_BOUND: f64 = 4.5e15;

impl SlidingWindowLog {
    /// How many instants are remembered.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first entry inside the window.
    fn first_inside(&self, policy: &Policy, now: f64) -> usize {
        self.entries.partition_point(|entry| entry.time <= now - policy.window)
    }

    /// The running total before the entry at `index`.
    fn total_before(&self, index: usize) -> f64 {
        if index == 0 { self.before } else { self.entries[index - 1].total }
    }

    fn total(&self) -> f64 {
        self.entries.back().map_or(self.before, |entry| entry.total)
    }

    /// Drops what has left the window, and takes entries from the future as made now.
    fn trim(&mut self, standing: &Standing, now: f64) {
        let total = self.total();
        self.before = standing.before;
        self.entries.drain(..standing.first);
        if self.is_from_future(now) {
            let past = self.entries.partition_point(|entry| entry.time < now);
            self.entries.truncate(past);
            self.entries.push_back(Entry { time: now, total });
        }
        if self.entries.is_empty() || total > TOTAL_BOUND {
            for entry in &mut self.entries {
                entry.total -= self.before;
            }
            self.before = 0.0;
        }
        if self.entries.capacity() > 64 && self.entries.len() < self.entries.capacity() / 4 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }

    fn is_from_future(&self, now: f64) -> bool {
        self.entries.back().is_some_and(|entry| entry.time > now)
    }
}

/// A log at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// The first entry inside the window.
    first: usize,
    /// The running total before it.
    before: f64,
    /// Units inside the window, with what is about to be taken.
    used: f64,
    /// Units about to be taken.
    taken: f64,
}

impl Counter for SlidingWindowLog {
    type Standing = Standing;

    fn at(&self, policy: &Policy, now: f64) -> Standing {
        let first = self.first_inside(policy, now);
        let before = self.total_before(first);
        Standing { first, before, used: self.total() - before, taken: 0.0 }
    }

    fn admits(standing: &Standing, policy: &Policy, cost: f64) -> bool {
        standing.used + cost <= policy.limit
    }

    fn take(standing: Standing, _policy: &Policy, cost: f64, _now: f64) -> Standing {
        Standing { used: standing.used + cost, taken: cost, ..standing }
    }

    fn remaining(standing: &Standing, policy: &Policy) -> f64 {
        (policy.limit - standing.used).max(0.0)
    }

    fn wait(&self, standing: &Standing, policy: &Policy, cost: f64, now: f64) -> f64 {
        // Found by its total, which counts from the log's own start: a write may have moved entries since the standing.
        let excess = self.total() - standing.used + (standing.used + cost - policy.limit);
        let leaving = self.entries.partition_point(|entry| entry.total < excess);
        self.entries.get(leaving).map_or(0.0, |entry| entry.time.min(now) + policy.window - now)
    }

    fn reset_at(&self, _standing: &Standing, policy: &Policy, now: f64) -> f64 {
        let newest = self.entries.back().map_or(f64::NEG_INFINITY, |entry| entry.time.min(now));
        (newest + policy.window).max(now)
    }

    fn is_ahead(&self, _standing: &Standing, _policy: &Policy, now: f64) -> bool {
        self.is_from_future(now)
    }

    fn write(&mut self, standing: &Standing, _policy: &Policy, now: f64) {
        self.trim(standing, now);
        if standing.taken > 0.0 {
            let total = self.total() + standing.taken;
            match self.entries.back_mut() {
                Some(newest) if newest.time == now => newest.total = total,
                _ => self.entries.push_back(Entry { time: now, total }),
            }
        }
    }

    fn give_back(&mut self, _policy: &Policy, cost: f64, since: Option<f64>) {
        let Some(since) = since else { return self.give_back_newest(cost) };
        let Ok(index) = self.entries.binary_search_by(|entry| entry.time.total_cmp(&since)) else {
            return;
        };
        let given = cost.min(self.entries[index].total - self.total_before(index));
        for entry in self.entries.range_mut(index..) {
            entry.total -= given;
        }
        if self.entries[index].total == self.total_before(index) {
            self.entries.remove(index);
        }
    }
}

impl SlidingWindowLog {
    fn give_back_newest(&mut self, cost: f64) {
        let total = (self.total() - cost).max(self.before);
        while let Some(newest) = self.entries.pop_back() {
            let before = self.total();
            if before < total {
                self.entries.push_back(Entry { total, ..newest });
                break;
            }
        }
    }
}
