//! Expired states leave under steady traffic, a few at a time, and the memory with them.

use sluicegate::clock::SECOND;
use sluicegate::policy::{Algorithm, Policy};
use sluicegate::store::memory::Charge;

use crate::support::{Bench, DAY, algorithms};

/// The most states that one check of one policy may drop: its shard's turn and one other's.
const MOST_DROPPED: usize = 72;

/// K21. What goes is counted, not timed: a state that was dropped was swept.
#[test]
fn a_flood_that_expired_is_given_back_by_traffic_on_other_keys() {
    let bench = Bench::new(1_000_000);
    let policy = [bench.plain(Algorithm::FixedWindow, 5.0, SECOND)];
    for stranger in 0..200_000_u32 {
        let key = bench.store.fingerprint(&stranger.to_le_bytes());
        bench.store.check(&[Charge { key, policies: &policy }], 1.0);
    }
    assert_eq!(bench.keys(), 200_000);
    let full = bench.store.allocated();
    bench.at(2.0 * SECOND);
    let regulars: Vec<String> = (0..100).map(|number| format!("regular {number}")).collect();
    let mut checks = 0;
    while bench.keys() > 110 {
        for regular in &regulars {
            let before = bench.keys();
            bench.check(regular, &policy, 1.0);
            let dropped = before.saturating_sub(bench.keys());
            assert!(dropped <= MOST_DROPPED, "{dropped}");
            checks += 1;
        }
        assert!(checks < 1_000_000, "{} keys are left", bench.keys());
    }
    let left = bench.store.allocated();
    assert!(left < full / 8, "{left} of {full} bytes are left");
}

/// K21, with windows of a day: what has not expired stays.
#[test]
fn what_has_not_expired_is_not_swept() {
    for algorithm in algorithms() {
        let bench = Bench::new(100_000);
        let policy = bench.plain(algorithm, 5.0, DAY);
        for client in 0..2000 {
            bench.check(&format!("client {client}"), &[policy], 5.0);
        }
        bench.at(SECOND);
        for _ in 0..10_000 {
            bench.check("client 0", &[policy], 1.0);
        }
        assert_eq!(bench.keys(), 2000, "{algorithm:?}");
        assert!((0..2000).all(|client| !bench.admits(&format!("client {client}"), &[policy])));
    }
}

/// A21: a reload keeps what was counted, A22: and takes a new limit at once.
#[test]
fn a_reload_keeps_counts_and_takes_a_new_limit_at_once() {
    for algorithm in algorithms() {
        let bench = Bench::new(1000);
        let policy = bench.plain(algorithm, 5.0, DAY);
        assert!(bench.check("client", &[policy], 5.0).policies[0].admits);
        let policy = bench.plain(algorithm, 5.0, DAY);
        assert!(!bench.admits("client", &[policy]), "{algorithm:?}");
        let lowered = bench.plain(algorithm, 2.0, DAY);
        let state = bench.peek("client", &[lowered], 1.0).policies[0];
        assert_eq!((state.limit, state.remaining), (2.0, 0.0), "{algorithm:?}");
        let raised = bench.plain(algorithm, 20.0, DAY);
        let state = bench.peek("client", &[raised], 1.0).policies[0];
        // A bucket has what it had; a queue, and a window, have the room that was added.
        let remaining = if algorithm == Algorithm::TokenBucket { 0.0 } else { 15.0 };
        assert_eq!((state.limit, state.remaining), (20.0, remaining), "{algorithm:?}");
    }
}

/// A24: policies that are tracked under other names, windows or algorithms do not share a count.
#[test]
fn policies_of_other_identities_count_apart() {
    let bench = Bench::new(1000);
    let login = bench.track("login", Policy::new(Algorithm::FixedWindow, 5.0, 60.0 * SECOND));
    let api = bench.track("api", Policy::new(Algorithm::FixedWindow, 100.0, 60.0 * SECOND));
    for _ in 0..5 {
        assert!(bench.admits("client", &[api]));
    }
    assert_eq!(bench.check("client", &[login], 1.0).policies[0].remaining, 4.0);
}

/// The goal: at most 120 bytes for each of a million keys.
#[test]
fn a_million_keys_take_at_most_120_bytes_each() {
    let bench = Bench::new(1_000_000);
    let policies = [bench.plain(Algorithm::SlidingWindowCounter, 5.0, DAY)];
    for client in 0..1_000_000_u32 {
        let key = bench.store.fingerprint(&client.to_le_bytes());
        bench.store.check(&[Charge { key, policies: &policies }], 1.0);
    }
    assert_eq!(bench.keys(), 1_000_000);
    assert_eq!(bench.store.holdings().evicted, 0);
    let bytes = bench.store.allocated();
    assert!(bytes <= 120 * 1_000_000, "{bytes}");
}
