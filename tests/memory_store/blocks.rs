//! Blocks that an operator writes: as long as they say, apart from what is counted, and gone when they end.

use std::time::{Duration, Instant};

use sluicegate::clock::SECOND;
use sluicegate::decision::Outcome;
use sluicegate::policy::{Algorithm, Policy};

use crate::support::{Bench, DAY};

/// A store, and the outcome of a check of `client` with how long it is blocked.
fn bench() -> (Bench, impl Fn(&Bench) -> (Outcome, Option<f64>)) {
    let bench = Bench::new(1000);
    let policy = bench.track("policy", Policy::new(Algorithm::FixedWindow, 3.0, DAY));
    let ask = move |bench: &Bench| {
        let decision = bench.check("client", &[policy], 1.0);
        (decision.outcome, decision.retry_after())
    };
    (bench, ask)
}

fn block(bench: &Bench, key: &str, duration: f64) {
    bench.store.block(bench.store.fingerprint(key.as_bytes()), duration);
}

#[test]
fn a_block_ends_when_it_said() {
    let (bench, ask) = bench();
    block(&bench, "client", 10.0 * SECOND);
    assert_eq!(ask(&bench), (Outcome::Denylisted, Some(10.0 * SECOND)));
    bench.at(10.0 * SECOND - 1.0);
    assert_eq!(ask(&bench), (Outcome::Denylisted, Some(1.0)));
    assert_eq!(bench.store.holdings().blocked, 1);
    bench.at(10.0 * SECOND);
    assert_eq!(ask(&bench), (Outcome::Allowed, None));
    assert_eq!(bench.store.holdings().blocked, 0);
}

/// A11.
#[test]
fn a_block_lasts_no_longer_when_the_clock_goes_back() {
    let (bench, ask) = bench();
    block(&bench, "client", 10.0 * SECOND);
    bench.at(-3600.0 * SECOND);
    assert_eq!(ask(&bench), (Outcome::Denylisted, Some(10.0 * SECOND)));
    bench.at(-3590.0 * SECOND);
    assert_eq!(ask(&bench), (Outcome::Allowed, None));
}

#[test]
fn a_blocked_client_is_charged_nothing_and_keeps_what_it_used() {
    let (bench, ask) = bench();
    assert_eq!(ask(&bench), (Outcome::Allowed, None));
    block(&bench, "client", 10.0 * SECOND);
    for _ in 0..10 {
        assert_eq!(ask(&bench).0, Outcome::Denylisted);
    }
    let key = bench.store.fingerprint(b"client");
    assert!(bench.store.unblock(key));
    assert!(!bench.store.unblock(key), "there is none any more");
    let outcomes = [(); 3].map(|()| ask(&bench).0);
    assert_eq!(outcomes, [Outcome::Allowed, Outcome::Allowed, Outcome::Denied]);
}

#[test]
fn a_block_and_what_is_counted_are_reset_apart() {
    let (bench, ask) = bench();
    while ask(&bench).0 == Outcome::Allowed {}
    block(&bench, "client", 10.0 * SECOND);
    bench.reset("client");
    assert_eq!(ask(&bench).0, Outcome::Denylisted, "a reset does not unblock");
    bench.store.unblock(bench.store.fingerprint(b"client"));
    assert_eq!(ask(&bench).0, Outcome::Allowed, "nor does a block keep what was reset");
}

#[test]
fn the_block_of_an_address_denies_the_key_that_comes_with_it() {
    let (bench, _) = bench();
    let policy = [bench.track("policy", Policy::new(Algorithm::FixedWindow, 3.0, DAY))];
    block(&bench, "address", 5.0 * SECOND);
    block(&bench, "client", 2.0 * SECOND);
    let charges = [bench.charge("client", &policy), bench.charge("address", &policy)];
    let decision = bench.store.check(&charges, 1.0);
    assert_eq!(decision.blocked_for, Some(5.0 * SECOND), "the longer one is told");
    assert_eq!(bench.store.peek(&charges, 1.0), decision);
    assert_eq!(bench.keys(), 0);
}

#[test]
fn many_blocks_cost_little_each_and_the_ended_ones_are_given_back() {
    let bench = Bench::new(1000);
    let begin = Instant::now();
    for round in 0..2_u32 {
        bench.at(f64::from(round) * 3.0 * SECOND);
        for client in 0..50_000 {
            block(&bench, &format!("client {client} of {round}"), SECOND);
        }
        assert_eq!(bench.store.holdings().blocked, 50_000);
    }
    // Looking through all blocks for each new one would take minutes.
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}
