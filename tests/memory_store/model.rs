//! The memory store as one would write it on a board: maps of small states, whole numbers, no closed form where a search
//! does. Doubles stand only where the sliding window counter's formula is written in them.

use std::collections::HashMap;

use sluicegate::decision::PolicyState;
use sluicegate::policy::{Algorithm, Policy};

/// A policy in whole numbers.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) algorithm: Algorithm,
    pub(crate) limit: i128,
    pub(crate) window: i128,
    capacity: i128,
    has_burst: bool,
    aligned: bool,
    max_delay: i128,
}

/// A whole number that came as a double.
#[expect(clippy::cast_possible_truncation, reason = "whole, and far below 2^127")]
pub(crate) fn whole(number: f64) -> i128 {
    assert_eq!(number.fract(), 0.0);
    number as i128
}

/// A whole number as the double that the store says.
#[expect(clippy::cast_precision_loss, reason = "below 2^53 in these traces")]
fn double(number: i128) -> f64 {
    number as f64
}

impl Rule {
    pub(crate) fn of(policy: &Policy) -> Self {
        Self {
            algorithm: policy.algorithm,
            limit: whole(policy.limit),
            window: whole(policy.window),
            capacity: whole(policy.capacity),
            has_burst: policy.has_burst,
            aligned: policy.aligned,
            max_delay: whole(policy.max_delay),
        }
    }

    pub(crate) fn with_limit(self, limit: i128) -> Self {
        let capacity = if self.has_burst && limit > 0 { self.capacity } else { limit };
        Self { limit, capacity, ..self }
    }
}

#[derive(Clone, Debug)]
enum State {
    Fixed { count: i128, end: Option<i128> },
    Counter { prev: i128, cur: i128, number: i128 },
    Log(Vec<(i128, i128)>),
    Token { level: i128, time: i128 },
    Leaky { level: i128, time: i128 },
}

impl State {
    fn fresh(rule: &Rule, now: i128) -> Self {
        match rule.algorithm {
            Algorithm::FixedWindow => Self::Fixed { count: 0, end: None },
            Algorithm::SlidingWindowCounter => Self::Counter { prev: 0, cur: 0, number: 0 },
            Algorithm::SlidingWindowLog => Self::Log(Vec::new()),
            Algorithm::TokenBucket => Self::Token { level: rule.capacity * rule.window, time: now },
            Algorithm::LeakyBucket => Self::Leaky { level: 0, time: now },
        }
    }

    /// Whether a clock that went back, or a capacity that was lowered, left the state ahead.
    fn is_ahead(&self, rule: &Rule, now: i128) -> bool {
        match self {
            Self::Fixed { end, .. } => end.is_some_and(|end| end > now + rule.window),
            Self::Counter { number, .. } => *number > now / rule.window,
            Self::Log(entries) => entries.iter().any(|(time, _)| *time > now),
            Self::Token { time, .. } => *time > now,
            Self::Leaky { level, time } => {
                let drained = level - (now - time) * rule.limit;
                *time > now || drained > rule.capacity * rule.window
            }
        }
    }

    /// The state as it stands at `now`.
    fn at(&self, rule: &Rule, now: i128) -> Self {
        let full = rule.capacity * rule.window;
        match self {
            Self::Fixed { count, end: Some(end) } if *end > now => {
                Self::Fixed { count: *count, end: Some((*end).min(now + rule.window)) }
            }
            Self::Fixed { .. } => Self::Fixed { count: 0, end: None },
            Self::Counter { prev, cur, number } => {
                let here = now / rule.window;
                let (prev, cur) = match here - number {
                    ..=0 => (*prev, *cur),
                    1 => (*cur, 0),
                    _ => (0, 0),
                };
                Self::Counter { prev, cur, number: here }
            }
            Self::Log(entries) => {
                let inside = entries.iter().filter(|(time, _)| *time > now - rule.window);
                Self::Log(inside.map(|(time, cost)| ((*time).min(now), *cost)).collect())
            }
            Self::Token { level, time } => {
                let elapsed = (now - time).max(0);
                Self::Token { level: (level + elapsed * rule.limit).min(full), time: now }
            }
            Self::Leaky { level, time } => {
                let elapsed = (now - time).max(0);
                Self::Leaky { level: (level - elapsed * rule.limit).max(0).min(full), time: now }
            }
        }
    }

    /// Whether `asked` would pass at `instant`, of a state that stood at an instant no later.
    fn passes(&self, rule: &Rule, asked: i128, instant: i128) -> bool {
        if asked > rule.capacity {
            return false;
        }
        match self.at(rule, instant) {
            Self::Fixed { count, .. } => count + asked <= rule.limit,
            Self::Counter { prev, cur, number } => {
                let elapsed = double(instant - number * rule.window);
                let weighted = double(prev) * (1.0 - elapsed / double(rule.window));
                weighted + double(cur) + double(asked) <= double(rule.limit)
            }
            Self::Log(entries) => {
                entries.iter().map(|(_, cost)| cost).sum::<i128>() + asked <= rule.limit
            }
            Self::Token { level, .. } => level >= asked * rule.window,
            Self::Leaky { level, .. } => {
                level <= (rule.capacity - asked) * rule.window
                    && level <= rule.max_delay * rule.limit
            }
        }
    }

    fn take(&mut self, rule: &Rule, taken: i128, now: i128) {
        match self {
            Self::Fixed { count, end } => {
                let start = if rule.aligned { now - now % rule.window } else { now };
                *end = end.or(Some(start + rule.window));
                *count += taken;
            }
            Self::Counter { cur, .. } => *cur += taken,
            Self::Log(entries) => entries.push((now, taken)),
            Self::Token { level, .. } => *level -= taken * rule.window,
            Self::Leaky { level, .. } => *level += taken * rule.window,
        }
    }

    fn give_back(&mut self, rule: &Rule, given: i128, since: Option<i128>) {
        match self {
            Self::Fixed { count, end } => {
                let start = end.map_or(i128::MIN, |end| end - rule.window);
                if since.is_none_or(|since| since >= start) {
                    *count = (*count - given).max(0);
                }
            }
            Self::Counter { prev, cur, number } => {
                let from_cur = given.min(*cur);
                match since.map(|since| since / rule.window - *number) {
                    None => {
                        *cur -= from_cur;
                        *prev = (*prev - (given - from_cur)).max(0);
                    }
                    Some(0..) => *cur -= from_cur,
                    Some(-1) => *prev = (*prev - given).max(0),
                    Some(_) => {}
                }
            }
            Self::Log(entries) => {
                let mut left = given;
                for (time, cost) in entries.iter_mut().rev() {
                    if since.is_none_or(|since| since == *time) {
                        let part = left.min(*cost);
                        (*cost, left) = (*cost - part, left - part);
                    }
                }
                entries.retain(|(_, cost)| *cost > 0);
            }
            Self::Token { level, .. } => {
                *level = (*level + given * rule.window).min(rule.capacity * rule.window);
            }
            Self::Leaky { level, .. } => *level = (*level - given * rule.window).max(0),
        }
    }

    /// When the full quota is back.
    fn reset_at(&self, rule: &Rule, now: i128) -> i128 {
        match self {
            Self::Fixed { count: 1.., end: Some(end) } => *end,
            Self::Counter { cur: 1.., number, .. } => (number + 2) * rule.window,
            Self::Counter { prev: 1.., number, .. } => (number + 1) * rule.window,
            Self::Log(entries) => entries.last().map_or(now, |(time, _)| time + rule.window),
            Self::Fixed { .. } | Self::Counter { .. } => now,
            Self::Token { .. } | Self::Leaky { .. } => {
                first(now, |instant| match self.at(rule, instant) {
                    Self::Token { level, .. } => level >= rule.capacity * rule.window,
                    Self::Leaky { level, .. } => level == 0,
                    _ => unreachable!(),
                })
            }
        }
    }

    /// What is told of a state that stands at `now`.
    fn report(&self, rule: &Rule, cost: i128, now: i128, admits: bool, delay: i128) -> PolicyState {
        let asked = cost.max(1);
        let more_than = (1..=rule.capacity + 1).find(|amount| !self.passes(rule, *amount, now));
        let remaining = more_than.unwrap_or(1) - 1;
        let first = |amount| first(now, |instant| self.passes(rule, amount, instant));
        let retry_at = (!admits && asked <= rule.capacity).then(|| first(asked));
        let next_at = retry_at
            .unwrap_or_else(|| if remaining == rule.capacity { now } else { first(remaining + 1) });
        let retry_after = match retry_at {
            _ if admits => 0.0,
            Some(retry_at) => double(retry_at - now),
            None => f64::INFINITY,
        };
        PolicyState {
            admits,
            limit: double(rule.capacity),
            remaining: double(remaining),
            reset_at: double(self.reset_at(rule, now)),
            next_at: double(next_at),
            retry_after,
            delay: double(delay),
        }
    }

    /// How long a request waits that is admitted at `now`.
    fn delay(&self, rule: &Rule) -> i128 {
        match self {
            Self::Leaky { level, .. } if *level > 0 => (level + rule.limit - 1) / rule.limit,
            _ => 0,
        }
    }
}

/// The first instant from `now` that passes: a search in ever longer steps, then in halves.
fn first(now: i128, passes: impl Fn(i128) -> bool) -> i128 {
    if passes(now) {
        return now;
    }
    let (mut fails, mut step) = (now, 1);
    while !passes(fails + step) {
        fails += step;
        step *= 2;
    }
    let mut passing = fails + step;
    while passing - fails > 1 {
        let middle = fails + (passing - fails) / 2;
        if passes(middle) { passing = middle } else { fails = middle }
    }
    passing
}

/// A key and a policy, by their numbers.
pub(crate) type Name = (usize, usize);

/// All states, with the limit each was last checked under.
#[derive(Default)]
pub(crate) struct Model {
    states: HashMap<Name, (State, i128)>,
}

impl Model {
    fn state(&self, name: Name, rule: &Rule, now: i128) -> State {
        self.states.get(&name).map_or_else(|| State::fresh(rule, now), |(state, _)| state.clone())
    }

    pub(crate) fn peek(&self, asked: &[(Name, Rule)], cost: i128, now: i128) -> Vec<PolicyState> {
        let report = |(name, rule): &(Name, Rule)| {
            let state = self.state(*name, rule, now).at(rule, now);
            let admits = state.passes(rule, cost.max(1), now);
            let delay = if admits { state.delay(rule) } else { 0 };
            state.report(rule, cost, now, admits, delay)
        };
        let mut answers: Vec<PolicyState> = asked.iter().map(report).collect();
        if answers.iter().any(|answer| !answer.admits) {
            for answer in &mut answers {
                answer.delay = 0.0;
            }
        }
        answers
    }

    pub(crate) fn check(
        &mut self,
        asked: &[(Name, Rule)],
        cost: i128,
        now: i128,
    ) -> Vec<PolicyState> {
        let answers = self.peek(asked, cost, now);
        if cost == 0 {
            return answers;
        }
        for (name, rule) in asked {
            if let Some((state, limit)) = self.states.get_mut(name) {
                if rule.limit > 0 {
                    *limit = rule.limit;
                }
                if state.is_ahead(rule, now) {
                    *state = state.at(rule, now);
                }
            }
        }
        if answers.iter().any(|answer| !answer.admits) {
            return answers;
        }
        let take = |(name, rule): &(Name, Rule)| {
            let mut state = self.state(*name, rule, now).at(rule, now);
            let delay = state.delay(rule);
            state.take(rule, cost, now);
            let report = state.report(rule, cost, now, true, delay);
            self.states.insert(*name, (state, rule.limit));
            report
        };
        asked.iter().map(take).collect()
    }

    pub(crate) fn refund(
        &mut self,
        asked: &[(Name, Rule)],
        cost: i128,
        since: Option<i128>,
        now: i128,
    ) {
        for (name, rule) in asked {
            if let Some((state, limit)) = self.states.get_mut(name) {
                // Under a limit of 0 the client's own, last one says what it can hold.
                let rule = if rule.limit > 0 { *rule } else { rule.with_limit(*limit) };
                *state = state.at(&rule, now);
                state.give_back(&rule, cost, since);
            }
        }
    }

    pub(crate) fn reset(&mut self, key: usize) {
        self.states.retain(|name, _| name.0 != key);
    }

    /// The states of which nothing is left at `now`, which a store may forget or not: it must not show.
    pub(crate) fn spent(&self, rules: &[Rule], now: i128) -> Vec<Name> {
        let is_spent = |(name, (state, limit)): (&Name, &(State, i128))| {
            let rule = rules[name.1].with_limit(*limit);
            let spent = match state.at(&rule, now) {
                State::Fixed { end, .. } => end.is_none(),
                standing => standing.reset_at(&rule, now) <= now,
            };
            spent.then_some(*name)
        };
        self.states.iter().filter_map(is_spent).collect()
    }
}
