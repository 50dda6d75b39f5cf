//! The largest numbers that the store takes, and any valid ones: nothing panics, and what is told makes sense.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use sluicegate::clock::{LATEST_MS, MILLISECOND};
use sluicegate::decision::{Decision, Outcome};
use sluicegate::policy::{
    Algorithm, LONGEST_WINDOW, MOST, MOST_COST, Policy, SHORTEST_WINDOW, most_of,
};

use crate::support::{Bench, DAY, algorithms};

/// What holds for every decision, whatever was asked.
fn assert_sane(decision: &Decision, cost: f64) {
    let now = decision.now;
    assert!(decision.binding < decision.policies.len().max(1));
    for state in &decision.policies {
        assert!(state.remaining.fract() == 0.0, "{state:?}");
        assert!((0.0..=state.limit).contains(&state.remaining), "{state:?}");
        assert!(state.reset_at >= now && state.reset_at.is_finite(), "{now} {state:?}");
        assert!(state.next_at >= now && state.next_at.is_finite(), "{now} {state:?}");
        assert!(state.retry_after >= 0.0, "{state:?}");
        assert!(state.delay >= 0.0 && state.delay.is_finite(), "{state:?}");
        assert_eq!(state.retry_after.is_infinite(), cost.max(1.0) > state.limit, "{state:?}");
        assert!(!state.admits || state.retry_after == 0.0, "{state:?}");
    }
}

/// N05, A12.
#[test]
fn the_largest_numbers_are_decided() {
    for algorithm in algorithms() {
        let most = most_of(algorithm);
        for window in [SHORTEST_WINDOW, LONGEST_WINDOW] {
            for limit in [0.0, 1.0, most] {
                for (first, second) in [(0.0, LATEST_MS), (LATEST_MS, 0.0), (0.0, 0.0)] {
                    let bench = Bench::new(100);
                    let policies = [
                        bench.plain(algorithm, limit, window),
                        bench.track(
                            "burst",
                            Policy::new(algorithm, limit, window).with_burst(limit),
                        ),
                    ];
                    for milliseconds in [first, second] {
                        bench.clock.set(milliseconds);
                        for cost in [0.0, 1.0, limit, limit + 1.0, MOST_COST] {
                            for policies in [&policies[..1], &policies] {
                                assert_sane(&bench.check("client", policies, cost), cost);
                                assert_sane(&bench.peek("client", policies, cost), cost);
                            }
                        }
                        bench.refund("client", &policies, MOST_COST);
                        let full = bench.peek("client", &policies[..1], 1.0).policies[0];
                        assert_eq!(full.remaining, limit, "{algorithm:?} {window}");
                        bench.check("client", &policies, limit);
                    }
                }
            }
        }
    }
}

/// N05: a wait is found without counting to it.
#[test]
fn a_level_too_large_to_be_exact_costs_no_more_than_another() {
    let bench = Bench::new(100);
    let bucket = |algorithm| {
        let policy = Policy::new(algorithm, 1.0, LONGEST_WINDOW).with_burst(MOST);
        bench.track("burst", Policy { max_delay: LONGEST_WINDOW, ..policy })
    };
    let (token, leaky) = ([bucket(Algorithm::TokenBucket)], [bucket(Algorithm::LeakyBucket)]);
    let counter = [bench.plain(Algorithm::SlidingWindowCounter, MOST, LONGEST_WINDOW)];
    bench.clock.set(LONGEST_WINDOW / MILLISECOND);
    bench.check("client", &counter, 1.0);
    bench.clock.set(2.0 * LONGEST_WINDOW / MILLISECOND + 1.0);
    bench.check("client", &counter, MOST - 1.0);
    let begin = Instant::now();
    for _ in 0..100 {
        assert_sane(&bench.check("client", &token, 1.0), 1.0);
        assert_sane(&bench.check("client", &leaky, 1.0), 1.0);
        assert_sane(&bench.check("client", &counter, 1.0), 1.0);
    }
    // Counted out in microseconds, each would take a tenth of a second.
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
}

#[test]
fn a_million_entries_of_a_log_are_given_back_in_one_refund_or_one_by_one() {
    let bench = Bench::new(1_000_000);
    let policy = [bench.plain(Algorithm::SlidingWindowLog, 1e6, DAY)];
    assert_eq!(bench.check("client", &policy, 1e6).outcome, Outcome::Allowed);
    assert!(!bench.admits("client", &policy));
    bench.refund("client", &policy, 1e6);
    assert_eq!(bench.peek("client", &policy, 1.0).policies[0].remaining, 1e6);
    for taken in 0..50_000_u32 {
        bench.at(f64::from(taken));
        assert!(bench.admits("client", &policy));
    }
    assert_eq!(bench.keys(), 1 + 50_000 / 16);
    bench.refund("client", &policy, 25_000.0);
    assert_eq!(bench.keys(), 1 + 25_000 / 16);
    for taken in (0..25_000_u32).rev() {
        let since = Some(bench.clock.now() - f64::from(49_999 - taken));
        bench.store.refund(&[bench.charge("client", &policy)], 1.0, since);
    }
    assert_eq!(bench.keys(), 1);
    assert_eq!(bench.peek("client", &policy, 1.0).policies[0].remaining, 1e6);
}

/// A21, A22.
#[test]
fn what_was_used_is_still_used_after_a_limit_of_0() {
    for algorithm in algorithms() {
        let bench = Bench::new(100);
        let policy = bench.plain(algorithm, 10.0, DAY);
        assert_eq!(bench.check("client", &[policy], 10.0).outcome, Outcome::Allowed);
        let none = bench.plain(algorithm, 0.0, DAY);
        for _ in 0..100 {
            let decision = bench.check("client", &[none], 1.0);
            assert_eq!((decision.outcome, decision.retry_after()), (Outcome::Denied, None));
        }
        let policy = bench.plain(algorithm, 10.0, DAY);
        let remaining = bench.peek("client", &[policy], 1.0).policies[0].remaining;
        // A queue keeps min(level, capacity), which is nothing once the capacity was 0.
        let queue = algorithm == Algorithm::LeakyBucket;
        assert_eq!(remaining, if queue { 10.0 } else { 0.0 }, "{algorithm:?}");
    }
}

/// Any amount up to a bound, the ends more often than the rest.
fn amount(most: f64) -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(1.0),
        Just(most),
        Just(most - 1.0),
        (0.0..10.0_f64).prop_map(f64::round),
        (0.0..=1.0_f64).prop_map(move |part| (part * part * part * most).round()),
    ]
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let window = amount(LONGEST_WINDOW / MILLISECOND).prop_map(|ms| ms.max(1.0) * MILLISECOND);
    let delay = amount(LONGEST_WINDOW / MILLISECOND).prop_map(|ms| ms * MILLISECOND);
    (0..5_usize, amount(MOST), window, prop::option::of(amount(MOST)), delay, any::<bool>())
        .prop_map(|(algorithm, limit, window, burst, max_delay, aligned)| {
            let algorithm = Algorithm::ALL[algorithm].1;
            let policy = Policy::new(algorithm, limit.min(most_of(algorithm)), window);
            let bucket = matches!(algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket);
            let policy = match burst {
                Some(burst) if bucket => policy.with_burst(burst),
                _ => policy,
            };
            let aligned = aligned && algorithm == Algorithm::FixedWindow;
            Policy { max_delay, aligned, ..policy }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_valid_panics_or_tells_nonsense(
        max_keys in 1..40_usize,
        policies in prop::collection::vec(any_policy(), 1..4),
        steps in prop::collection::vec((0..8_u8, 0..12_u8, amount(MOST_COST), amount(LATEST_MS), amount(MOST)), 1..60),
    ) {
        let bench = Bench::new(max_keys);
        let track = |(index, policy): (usize, &Policy)| bench.track(&index.to_string(), *policy);
        let mut tracked: Vec<_> = policies.iter().enumerate().map(track).collect();
        for (what, key, cost, milliseconds, limit) in steps {
            let key = format!("{key}");
            match what {
                0 => bench.clock.set(milliseconds),
                1 => bench.clock.set(bench.clock.now() / MILLISECOND + milliseconds / 1e6),
                2 => bench.refund(&key, &tracked, cost),
                3 => bench.reset(&key),
                4 => {
                    let policy = tracked[0].policy;
                    let policy = policy.with_limit(limit.min(most_of(policy.algorithm)));
                    tracked[0] = bench.track("0", policy);
                }
                5 => assert_sane(&bench.peek(&key, &tracked, cost), cost),
                6 => assert_sane(&bench.check(&key, &tracked[..1], cost), cost),
                _ => assert_sane(&bench.check(&key, &tracked, cost), cost),
            }
            prop_assert!(bench.keys() <= max_keys);
        }
    }
}
