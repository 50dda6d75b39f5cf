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
use crate::whole::floor;

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

/// An algorithm. A check brings the state to `now` once, as a [`Counter::Standing`], asks that, and writes it back if
/// anything was taken.
trait Counter {
    /// The state as it stands at one instant, with what several questions need worked out.
    type Standing: Copy;

    /// Brings the state to `now`.
    fn at(&self, policy: &Policy, now: f64) -> Self::Standing;
    /// Whether `cost`, from 1 to the capacity, would pass.
    fn admits(standing: &Self::Standing, policy: &Policy, cost: f64) -> bool;
    /// The standing once `cost` was taken.
    fn take(standing: Self::Standing, policy: &Policy, cost: f64, now: f64) -> Self::Standing;
    /// The largest cost that would pass.
    fn remaining(standing: &Self::Standing, policy: &Policy) -> f64;
    /// How long a request that is admitted should wait before it goes on.
    fn delay(_standing: &Self::Standing, _policy: &Policy) -> f64 {
        0.0
    }
    /// How long until `cost`, at most the capacity and not admitted now, would pass. `self` is the state as it is stored.
    fn wait(&self, standing: &Self::Standing, policy: &Policy, cost: f64, now: f64) -> f64;
    /// When the full quota is back; `now` if nothing is used. `self` is the state as it is stored.
    fn reset_at(&self, standing: &Self::Standing, policy: &Policy, now: f64) -> f64;
    /// Whether the state is ahead of a clock that went back, or above a capacity that was lowered. Even a denied check
    /// then writes it down as it stands now, or the wait that was told would begin anew with every look at it.
    fn is_ahead(&self, standing: &Self::Standing, policy: &Policy, now: f64) -> bool;
    /// Stores a standing, which came from this state.
    fn write(&mut self, standing: &Self::Standing, policy: &Policy, now: f64);
    /// Gives `cost` back to a state that was written at `now`: what was taken at `since`, or, without it, the newest.
    fn give_back(&mut self, policy: &Policy, cost: f64, since: Option<f64>);
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
        let mut answer = PolicyState::default();
        self.check_into(&mut answer, policy, cost, now);
        answer
    }

    /// [`State::check`] for the hot path: the answer is written where it is wanted, and copied nowhere.
    #[inline]
    pub fn check_into(&mut self, answer: &mut PolicyState, policy: &Policy, cost: f64, now: f64) {
        with_counter!(self, counter => check(answer, counter, policy, cost, now));
    }

    /// What a check would say; takes nothing and writes nothing.
    #[inline]
    pub fn peek(&self, policy: &Policy, cost: f64, now: f64) -> PolicyState {
        let mut answer = PolicyState::default();
        with_counter_ref!(self, counter => peek(&mut answer, counter, policy, cost, now));
        answer
    }

    /// Writes down a state that is ahead: all that a denied check may write.
    pub fn pull_back(&mut self, policy: &Policy, now: f64) {
        with_counter!(self, counter => pull_back(counter, policy, now));
    }

    /// Gives `cost` back: what was taken at `since`, or, without it, the newest that is still counted.
    pub fn refund(&mut self, policy: &Policy, cost: f64, since: Option<f64>, now: f64) {
        with_counter!(self, counter => {
            let standing = counter.at(policy, now);
            counter.write(&standing, policy, now);
            counter.give_back(policy, cost, since);
        });
    }

    /// The largest cost that would pass now.
    pub fn remaining(&self, policy: &Policy, now: f64) -> f64 {
        with_counter_ref!(self, counter => remaining(counter, policy, now))
    }

    /// When the state says nothing any more; `now` or earlier means that it may be forgotten. A fixed window goes on to its
    /// end even when all that it counted was given back.
    #[inline]
    pub fn expires_at(&self, policy: &Policy, now: f64) -> f64 {
        match self {
            Self::FixedWindow(window) => window.end.min(now + policy.window),
            _ => {
                with_counter_ref!(self, counter => counter.reset_at(&counter.at(policy, now), policy, now))
            }
        }
    }

    /// Counts the newest entry of a log as of now, so that what is taken now joins it and the log does not grow. It counts
    /// for longer than it has to, never for less.
    pub fn join_newest(&mut self, policy: &Policy, now: f64) {
        if let Self::SlidingWindowLog(log) = self {
            log.write(&log.at(policy, now), policy, now);
            log.join_newest(now);
        }
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
fn check<C: Counter>(
    answer: &mut PolicyState,
    counter: &mut C,
    policy: &Policy,
    cost: f64,
    now: f64,
) {
    let standing = counter.at(policy, now);
    let asked = cost.max(1.0);
    if !(asked <= policy.capacity && C::admits(&standing, policy, asked)) {
        if cost > 0.0 && counter.is_ahead(&standing, policy, now) {
            counter.write(&standing, policy, now);
        }
        return report_denied(answer, counter, &standing, policy, asked, now);
    }
    let delay = C::delay(&standing, policy);
    if cost == 0.0 {
        return report_admitted(answer, counter, &standing, policy, delay, now);
    }
    let standing = C::take(standing, policy, cost, now);
    counter.write(&standing, policy, now);
    report_admitted(answer, counter, &standing, policy, delay, now);
}

#[inline]
fn peek<C: Counter>(answer: &mut PolicyState, counter: &C, policy: &Policy, cost: f64, now: f64) {
    let standing = counter.at(policy, now);
    let asked = cost.max(1.0);
    if asked <= policy.capacity && C::admits(&standing, policy, asked) {
        report_admitted(answer, counter, &standing, policy, C::delay(&standing, policy), now);
    } else {
        report_denied(answer, counter, &standing, policy, asked, now);
    }
}

fn pull_back<C: Counter>(counter: &mut C, policy: &Policy, now: f64) {
    let standing = counter.at(policy, now);
    if counter.is_ahead(&standing, policy, now) {
        counter.write(&standing, policy, now);
    }
}

fn remaining<C: Counter>(counter: &C, policy: &Policy, now: f64) -> f64 {
    C::remaining(&counter.at(policy, now), policy)
}

#[inline]
fn report_admitted<C: Counter>(
    answer: &mut PolicyState,
    counter: &C,
    standing: &C::Standing,
    policy: &Policy,
    delay: f64,
    now: f64,
) {
    let remaining = C::remaining(standing, policy);
    let next_at = next_at(counter, standing, policy, remaining, now);
    answer.admits = true;
    answer.limit = policy.capacity;
    answer.remaining = remaining;
    answer.reset_at = counter.reset_at(standing, policy, now);
    answer.next_at = next_at;
    answer.retry_after = 0.0;
    answer.delay = delay;
}

#[inline]
fn report_denied<C: Counter>(
    answer: &mut PolicyState,
    counter: &C,
    standing: &C::Standing,
    policy: &Policy,
    asked: f64,
    now: f64,
) {
    let remaining = C::remaining(standing, policy);
    let reset_at = counter.reset_at(standing, policy, now);
    let (retry_after, next_at) = if asked > policy.capacity {
        (f64::INFINITY, next_at(counter, standing, policy, remaining, now))
    } else {
        let wait = counter.wait(standing, policy, asked, now);
        (wait, now + wait)
    };
    answer.admits = false;
    answer.limit = policy.capacity;
    answer.remaining = remaining;
    answer.reset_at = reset_at;
    answer.next_at = next_at;
    answer.retry_after = retry_after;
    answer.delay = 0.0;
}

/// When more than `remaining` would pass; `now` if nothing more ever does.
#[inline]
fn next_at<C: Counter>(
    counter: &C,
    standing: &C::Standing,
    policy: &Policy,
    remaining: f64,
    now: f64,
) -> f64 {
    if remaining >= policy.capacity {
        now
    } else {
        now + counter.wait(standing, policy, remaining + 1.0, now)
    }
}

/// Instants from here on are not whole microseconds any more (2^53), and one more or less cannot be told apart.
const LAST_EXACT: f64 = 9_007_199_254_740_992.0;

/// The first instant from `now` at which `passes`, which never turns false again as time goes on. The guess is a rounded
/// closed form, nearly always a microsecond or two off at most; where amounts are too large to be exact it may be off by
/// seconds, so the steps double, and what lies between the last two is halved.
#[inline]
fn first_instant(guess: f64, now: f64, passes: impl Fn(f64) -> bool) -> f64 {
    let start = guess.max(now);
    if start >= LAST_EXACT {
        return start;
    }
    let (mut fails, mut hits, mut step) = (start, start, 1.0);
    if passes(start) {
        while hits == fails {
            if hits == now {
                return now;
            }
            fails = (hits - step).max(now);
            if passes(fails) {
                hits = fails;
            }
            step *= 2.0;
        }
    } else {
        while hits == fails {
            hits = (fails + step).min(LAST_EXACT);
            if hits < LAST_EXACT && !passes(hits) {
                fails = hits;
            }
            step *= 2.0;
        }
    }
    while hits - fails > 1.0 {
        let middle = floor(fails + (hits - fails) / 2.0);
        if passes(middle) {
            hits = middle;
        } else {
            fails = middle;
        }
    }
    hits
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
