//! The five algorithms: pure functions from (state, policy, cost, now) to (state, what the policy says).
//!
//! Times are whole microseconds, amounts whole units, all in IEEE doubles, and every formula is written in one fixed
//! order of operations: the Lua scripts repeat it operation by operation, and both give the same answer to the last bit.
//! There is no epsilon anywhere. `docs/algorithms.md` tells users what each algorithm means.
//!
//! What holds for all of them:
//! - A check asks for `max(cost, 1)` units: cost 0 asks whether one unit would pass, and takes nothing.
//! - A denied check writes nothing, except that a state which is ahead of the clock (the clock went back) is pulled back to
//!   now; otherwise the client would stay locked out until the clock had caught up.
//! - `remaining` is the largest cost that would pass now.
//! - `retry_after` is the first instant at which the same cost would pass: a closed form, then held against the admission
//!   comparison itself, one microsecond up or down.

mod fixed_window;
mod leaky_bucket;
mod sliding_window_counter;
mod sliding_window_log;
mod token_bucket;

pub use fixed_window::FixedWindow;
pub use leaky_bucket::LeakyBucket;
pub use sliding_window_counter::SlidingWindowCounter;
pub use sliding_window_log::SlidingWindowLog;
pub use token_bucket::TokenBucket;

use crate::decision::PolicyState;
use crate::policy::{Algorithm, Policy};

/// What is remembered of one client under one policy.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Of a `fixed_window`.
    FixedWindow(FixedWindow),
    /// Of a `sliding_window_counter`.
    SlidingWindowCounter(SlidingWindowCounter),
    /// Of a `sliding_window_log`; boxed, because a store holds a million of the small ones.
    SlidingWindowLog(Box<SlidingWindowLog>),
    /// Of a `token_bucket`.
    TokenBucket(TokenBucket),
    /// Of a `leaky_bucket`.
    LeakyBucket(LeakyBucket),
}

/// What an algorithm has to say of its state. Every method takes the state as it was stored and brings it to `now` itself.
trait Counter {
    /// Whether `cost` would pass now.
    fn admits(&self, policy: &Policy, cost: f64, now: f64) -> bool;
    /// How long until `cost`, at most the capacity, would pass: 0 when it passes now.
    fn wait(&self, policy: &Policy, cost: f64, now: f64) -> f64;
    /// The largest cost that would pass now.
    fn remaining(&self, policy: &Policy, now: f64) -> f64;
    /// When the full quota is back; `now` if nothing is used.
    fn reset_at(&self, policy: &Policy, now: f64) -> f64;
    /// Whether the state is ahead of a clock that went back, or above a capacity that was lowered. Even a denied check
    /// then writes it down as it stands now, or the wait that was told would begin anew with every look at it.
    fn is_ahead(&self, policy: &Policy, now: f64) -> bool;
    /// Brings the state to `now` in place; what it says does not change.
    fn settle(&mut self, policy: &Policy, now: f64);
    /// Counts `cost` in a state that was settled and admits it.
    fn take(&mut self, policy: &Policy, cost: f64, now: f64);
    /// Gives `cost` back: what was taken at `since`, or, without it, the newest.
    fn give_back(&mut self, policy: &Policy, cost: f64, since: Option<f64>, now: f64);
    /// How long a request that is admitted now should wait before it goes on.
    fn delay(&self, _policy: &Policy, _now: f64) -> f64 {
        0.0
    }
}

/// Calls a function with the algorithm's own state.
macro_rules! with_counter {
    ($state:expr, $counter:ident => $call:expr) => {
        match $state {
            State::FixedWindow($counter) => $call,
            State::SlidingWindowCounter($counter) => $call,
            State::SlidingWindowLog($counter) => {
                // Plain auto-deref would make the generic functions see the box.
                let $counter = &mut **$counter;
                $call
            }
            State::TokenBucket($counter) => $call,
            State::LeakyBucket($counter) => $call,
        }
    };
}

/// The same for a state that is only read.
macro_rules! with_counter_ref {
    ($state:expr, $counter:ident => $call:expr) => {
        match $state {
            State::FixedWindow($counter) => $call,
            State::SlidingWindowCounter($counter) => $call,
            State::SlidingWindowLog($counter) => {
                let $counter = &**$counter;
                $call
            }
            State::TokenBucket($counter) => $call,
            State::LeakyBucket($counter) => $call,
        }
    };
}

impl State {
    /// The state of a client that was never seen.
    #[inline]
    pub fn fresh(policy: &Policy, now: f64) -> Self {
        match policy.algorithm {
            Algorithm::FixedWindow => Self::FixedWindow(FixedWindow::default()),
            Algorithm::SlidingWindowCounter => {
                Self::SlidingWindowCounter(SlidingWindowCounter::default())
            }
            Algorithm::SlidingWindowLog => Self::SlidingWindowLog(Box::default()),
            Algorithm::TokenBucket => Self::TokenBucket(TokenBucket::full(policy, now)),
            Algorithm::LeakyBucket => Self::LeakyBucket(LeakyBucket::empty(now)),
        }
    }

    /// Takes `cost` if the policy admits it, and says how the policy stands afterwards.
    #[inline]
    pub fn check(&mut self, policy: &Policy, cost: f64, now: f64) -> PolicyState {
        with_counter!(self, counter => check(counter, policy, cost, now))
    }

    /// What a check would say; takes nothing and writes nothing.
    #[inline]
    pub fn peek(&self, policy: &Policy, cost: f64, now: f64) -> PolicyState {
        with_counter_ref!(self, counter => {
            let admits = admits(counter, policy, cost, now);
            let delay = if admits { counter.delay(policy, now) } else { 0.0 };
            report(counter, policy, cost, now, admits, delay)
        })
    }

    /// Pulls a state that is ahead of the clock back to now: what a denied check may write.
    pub fn pull_back(&mut self, policy: &Policy, now: f64) {
        with_counter!(self, counter => if counter.is_ahead(policy, now) { counter.settle(policy, now) });
    }

    /// Gives `cost` back: what was taken at `since`, or, without it, the newest that is still counted.
    pub fn refund(&mut self, policy: &Policy, cost: f64, since: Option<f64>, now: f64) {
        with_counter!(self, counter => {
            counter.settle(policy, now);
            counter.give_back(policy, cost, since, now);
        });
    }

    /// The largest cost that would pass now.
    pub fn remaining(&self, policy: &Policy, now: f64) -> f64 {
        with_counter_ref!(self, counter => counter.remaining(policy, now))
    }

    /// When the state says nothing any more; `now` or earlier means that it may be forgotten.
    pub fn reset_at(&self, policy: &Policy, now: f64) -> f64 {
        with_counter_ref!(self, counter => counter.reset_at(policy, now))
    }

    /// Whether the next unit may make the state weigh more.
    #[inline]
    pub fn will_grow(&self) -> bool {
        matches!(self, Self::SlidingWindowLog(log) if log.len() % 16 == 15)
    }

    /// What the state weighs against the bound of a store: one, and one more for each 16 entries of a log.
    pub fn weight(&self) -> usize {
        match self {
            Self::SlidingWindowLog(log) => 1 + log.len() / 16,
            _ => 1,
        }
    }
}

#[inline]
fn check<C: Counter>(counter: &mut C, policy: &Policy, cost: f64, now: f64) -> PolicyState {
    if !admits(counter, policy, cost, now) {
        if cost > 0.0 && counter.is_ahead(policy, now) {
            counter.settle(policy, now);
        }
        return report(counter, policy, cost, now, false, 0.0);
    }
    let delay = counter.delay(policy, now);
    if cost > 0.0 {
        counter.settle(policy, now);
        counter.take(policy, cost, now);
    }
    report(counter, policy, cost, now, true, delay)
}

#[inline]
fn admits<C: Counter>(counter: &C, policy: &Policy, cost: f64, now: f64) -> bool {
    let asked = cost.max(1.0);
    asked <= policy.capacity && counter.admits(policy, asked, now)
}

#[inline]
fn report<C: Counter>(
    counter: &C,
    policy: &Policy,
    cost: f64,
    now: f64,
    admits: bool,
    delay: f64,
) -> PolicyState {
    let remaining = counter.remaining(policy, now);
    let asked = cost.max(1.0);
    let retry_after = if admits {
        0.0
    } else if asked > policy.capacity {
        f64::INFINITY
    } else {
        counter.wait(policy, asked, now)
    };
    let next_at = if !admits && retry_after.is_finite() {
        now + retry_after
    } else if remaining >= policy.capacity {
        now
    } else {
        now + counter.wait(policy, remaining + 1.0, now)
    };
    let reset_at = counter.reset_at(policy, now);
    PolicyState { admits, limit: policy.capacity, remaining, reset_at, next_at, retry_after, delay }
}

/// Instants from here on are not whole microseconds any more (2^53), and one more or less cannot be told apart.
const LAST_EXACT: f64 = 9_007_199_254_740_992.0;

/// The first instant from `now` at which `passes`. The guess is a rounded closed form, a microsecond or two off at most,
/// and `passes` never turns false again as time goes on.
#[inline]
fn first_instant(guess: f64, now: f64, passes: impl Fn(f64) -> bool) -> f64 {
    let mut instant = guess.max(now);
    if instant >= LAST_EXACT {
        return instant;
    }
    while instant < LAST_EXACT && !passes(instant) {
        instant += 1.0;
    }
    while instant > now && passes(instant - 1.0) {
        instant -= 1.0;
    }
    instant
}

/// The largest whole amount from `guess` that `passes`, and 0 when not even 1 does.
#[inline]
fn largest_amount(guess: f64, passes: impl Fn(f64) -> bool) -> f64 {
    let mut amount = guess.max(0.0);
    while amount > 0.0 && !passes(amount) {
        amount -= 1.0;
    }
    while passes(amount + 1.0) {
        amount += 1.0;
    }
    amount
}
