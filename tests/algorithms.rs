//! What docs/algorithms.md promises of each algorithm, held by random traces: the bound on what passes, the first instant of a retry, and
//! that a denied check or a peek leaves no trace.

use proptest::prelude::*;
use sluicegate::algorithm::State;
use sluicegate::policy::{Algorithm, Policy};

/// A policy of every algorithm, with windows from a millisecond to a day.
fn policies() -> impl Strategy<Value = Policy> {
    let window = prop_oneof![Just(1e3), Just(1e6), Just(1.7e6), Just(6e7), Just(8.64e10)];
    (0..5_usize, 1..40_u32, window, 1..60_u32, any::<bool>(), 0..3_u32).prop_map(
        |(algorithm, limit, window, burst, aligned, delays)| {
            let algorithm = Algorithm::ALL[algorithm].1;
            let mut policy = Policy::new(algorithm, f64::from(limit), window);
            if matches!(algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket) && delays > 0 {
                policy = policy.with_burst(f64::from(burst));
            }
            policy.aligned = aligned && algorithm == Algorithm::FixedWindow;
            policy.max_delay = f64::from(delays) * window;
            policy
        },
    )
}

/// Steps of time, as parts of a window, and costs.
fn steps() -> impl Strategy<Value = Vec<(f64, u32)>> {
    let pause =
        prop_oneof![4 => Just(0.0), 4 => 0.0..0.2_f64, 2 => 0.2..1.1_f64, 1 => 1.1..3.0_f64];
    prop::collection::vec(
        (pause, prop_oneof![6 => Just(1_u32), 2 => 2..6_u32, 1 => Just(0)]),
        1..120,
    )
}

const START: f64 = 1_700_000_000_123_457.0;

/// Runs a trace; gives the admitted (time, cost, delay).
fn admitted(policy: &Policy, steps: &[(f64, u32)]) -> Vec<(f64, f64, f64)> {
    let (mut now, mut passed) = (START, Vec::new());
    let mut state = State::fresh(policy, now);
    for (pause, cost) in steps {
        now += (pause * policy.window).round();
        let answer = state.check(policy, f64::from(*cost), now);
        assert!(
            answer.remaining >= 0.0
                && answer.remaining.fract() == 0.0
                && answer.remaining <= answer.limit
        );
        assert!(answer.reset_at >= now && answer.next_at >= now);
        if answer.admits {
            passed.push((now, f64::from(*cost), answer.delay));
        }
    }
    passed
}

/// The most that passed in any half-open span of one window's length.
fn most_in_a_window(passed: &[(f64, f64, f64)], window: f64) -> f64 {
    let from = |start: f64| {
        passed.iter().filter(move |(time, ..)| *time >= start && *time < start + window)
    };
    passed.iter().map(|(start, ..)| from(*start).map(|(_, cost, _)| cost).sum()).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn never_more_than_the_algorithm_promises(policy in policies(), steps in steps()) {
        let passed = admitted(&policy, &steps);
        let most = most_in_a_window(&passed, policy.window);
        let Policy { limit, window, capacity, .. } = policy;
        match policy.algorithm {
            // A window on the boundary does not start with its first request, so that both bursts can fit in a span.
            Algorithm::FixedWindow if policy.aligned => prop_assert!(most <= 2.0 * limit),
            Algorithm::FixedWindow => prop_assert!(most <= (2.0 * limit - 1.0).max(limit)),
            Algorithm::SlidingWindowLog => prop_assert!(most <= limit),
            Algorithm::TokenBucket => prop_assert!(most <= capacity + limit),
            Algorithm::SlidingWindowCounter => {
                prop_assert!(most < 2.0 * limit || most <= limit);
                for (time, ..) in &passed {
                    let aligned = |time: f64| (time / window).floor();
                    let in_window = passed.iter().filter(|(other, ..)| aligned(*other) == aligned(*time));
                    prop_assert!(in_window.map(|(_, cost, _)| cost).sum::<f64>() <= limit);
                }
            }
            Algorithm::LeakyBucket => {
                // Each leaves no earlier than the units before it have drained.
                let mut free_at = 0.0_f64;
                for (time, cost, delay) in passed {
                    let time = time - START;
                    prop_assert!(delay <= policy.max_delay);
                    prop_assert!(cost == 0.0 || time + delay >= free_at - 0.5, "{} < {free_at}", time + delay);
                    free_at = free_at.max(time) + cost * window / limit;
                }
            }
        }
    }

    #[test]
    fn a_retry_passes_at_the_first_instant_and_not_a_microsecond_before(
        policy in policies(), steps in steps(), cost in 1..70_u32,
    ) {
        let cost = f64::from(cost);
        let mut now = START;
        let mut state = State::fresh(&policy, now);
        for (pause, taken) in &steps {
            now += (pause * policy.window).round();
            state.check(&policy, f64::from(*taken), now);
            let answer = state.peek(&policy, cost, now);
            if cost > policy.capacity {
                prop_assert!(!answer.admits && answer.retry_after.is_infinite());
            } else if !answer.admits {
                let first = now + answer.retry_after;
                prop_assert!(state.peek(&policy, cost, first).admits);
                prop_assert!(!state.peek(&policy, cost, first - 1.0).admits);
                prop_assert_eq!(answer.next_at, first);
            }
            // What remains passes, and one more does not; when more comes, it is there at that instant and not before.
            let now_state = state.peek(&policy, 1.0, now);
            let remaining = now_state.remaining;
            prop_assert!(remaining == 0.0 || state.peek(&policy, remaining, now).admits);
            prop_assert!(!state.peek(&policy, remaining + 1.0, now).admits);
            if now_state.next_at > now {
                let next = now_state.next_at;
                prop_assert!(state.peek(&policy, 1.0, next).remaining > remaining);
                prop_assert!(state.peek(&policy, 1.0, next - 1.0).remaining <= remaining);
            }
            // At the reset the full quota is back, a microsecond before it is not.
            let reset_at = now_state.reset_at;
            prop_assert!(state.peek(&policy, policy.capacity, reset_at).admits);
            if reset_at > now && policy.algorithm != Algorithm::SlidingWindowCounter {
                prop_assert!(!state.peek(&policy, policy.capacity, reset_at - 1.0).admits);
            }
        }
    }

    #[test]
    fn a_denied_check_and_a_peek_change_nothing(policy in policies(), steps in steps()) {
        let mut now = START;
        let mut state = State::fresh(&policy, now);
        for (pause, cost) in &steps {
            now += (pause * policy.window).round();
            let before = state.clone();
            let peeked = state.peek(&policy, f64::from(*cost), now);
            prop_assert_eq!(&state, &before);
            let answer = state.check(&policy, f64::from(*cost), now);
            prop_assert_eq!(answer.admits, peeked.admits);
            if !answer.admits || *cost == 0 {
                prop_assert_eq!(&state, &before);
                prop_assert_eq!(answer, peeked);
            }
        }
    }

    #[test]
    fn a_refund_gives_back_what_was_taken(policy in policies(), cost in 1..40_u32) {
        let cost = f64::from(cost);
        let mut state = State::fresh(&policy, START);
        if state.check(&policy, cost, START).admits {
            state.refund(&policy, cost, Some(START), START);
            prop_assert_eq!(state.peek(&policy, 1.0, START).remaining, State::fresh(&policy, START).peek(&policy, 1.0, START).remaining);
        }
    }

    #[test]
    fn a_clock_that_goes_back_frees_a_client_within_one_window_of_it(policy in policies(), back in 1..20_u32) {
        let mut state = State::fresh(&policy, START);
        while state.check(&policy, 1.0, START).admits {}
        let past = START - f64::from(back) * 3.6e9;
        let answer = state.check(&policy, 1.0, past);
        let bound = if policy.algorithm == Algorithm::SlidingWindowCounter { 2.0 } else { 1.0 };
        if !answer.admits {
            prop_assert!(answer.retry_after <= bound * policy.window, "{}", answer.retry_after);
            prop_assert!(state.peek(&policy, 1.0, past + answer.retry_after).admits);
        }
    }
}

#[test]
fn a_state_is_24_bytes() {
    assert_eq!(std::mem::size_of::<State>(), 24);
}

#[test]
fn a_huge_bucket_is_reported_without_end_or_nonsense() {
    let policy = Policy::new(Algorithm::TokenBucket, 1.0, 366.0 * 86_400e6).with_burst(1e9);
    let mut state = State::fresh(&policy, START);
    assert!(state.check(&policy, 1e9, START).admits);
    let answer = state.peek(&policy, 1e9, START);
    assert!(!answer.admits && answer.retry_after.is_finite() && answer.retry_after > 1e20);
}
