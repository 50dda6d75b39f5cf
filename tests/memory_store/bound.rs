//! The store at its bound: it holds no more than it may, forgets those who lose least by it, and never a client that has
//! used up its limit.

use proptest::prelude::*;
use sluicegate::clock::SECOND;
use sluicegate::decision::Outcome;
use sluicegate::policy::{Algorithm, Policy};
use sluicegate::store::memory::Tracked;

use crate::support::{Bench, DAY, algorithms};

/// Uses up a key's limit; the clock goes on a microsecond each time, so that a log has an entry for each.
fn exhaust(bench: &Bench, key: &str, policy: Tracked) -> f64 {
    let mut taken = 0.0;
    while bench.admits(key, &[policy]) {
        taken += 1.0;
        let now = bench.clock.now();
        bench.clock.set((now + 1.0) / 1000.0);
    }
    taken
}

fn is_denied(bench: &Bench, key: &str, policy: Tracked) -> bool {
    bench.check(key, &[policy], 1.0).outcome == Outcome::Denied
}

#[test]
fn a_flood_of_new_keys_holds_no_more_than_the_bound() {
    for algorithm in algorithms() {
        let bench = Bench::new(100);
        let policy = bench.plain(algorithm, 50.0, DAY);
        for stranger in 0..3000 {
            assert!(bench.admits(&format!("stranger {stranger}"), &[policy]), "{algorithm:?}");
            assert!(bench.keys() <= 100, "{algorithm:?} holds {}", bench.keys());
        }
        assert_eq!(bench.keys(), 100, "{algorithm:?}");
        assert_eq!(bench.store.holdings().evicted, 2900, "{algorithm:?}");
    }
}

#[test]
fn logs_weigh_one_key_more_for_each_16_entries() {
    let bench = Bench::new(100);
    let policy = bench.plain(Algorithm::SlidingWindowLog, 1000.0, DAY);
    for taken in 1..=160_u32 {
        bench.at(f64::from(taken));
        assert!(bench.admits("busy", &[policy]));
        assert_eq!(bench.keys(), 1 + taken as usize / 16);
    }
    for client in 0..200 {
        for taken in 0..20 {
            bench.at(f64::from(200 + client * 20 + taken));
            bench.admits(&format!("client {client}"), &[policy]);
            assert!(bench.keys() <= 100);
        }
    }
    bench.reset("busy");
    for client in 0..200 {
        bench.reset(&format!("client {client}"));
    }
    assert_eq!(bench.keys(), 0);
}

/// A11: a denied check of several policies pulls a log back, and the room of the entries that it joins is free again.
#[test]
fn a_log_that_a_clock_gone_back_shortens_gives_its_room_back() {
    let bench = Bench::new(100);
    let log = bench.plain(Algorithm::SlidingWindowLog, 40.0, DAY);
    let lax = bench.track("lax", Policy::new(Algorithm::FixedWindow, 100.0, DAY));
    assert_eq!(exhaust(&bench, "client", log), 40.0);
    assert_eq!(bench.keys(), 3);
    bench.at(-SECOND);
    assert!(!bench.admits("client", &[lax, log]));
    assert_eq!(bench.keys(), 1);
    bench.reset("client");
    assert_eq!(bench.keys(), 0);
}

#[test]
fn expired_states_go_before_living_ones() {
    let bench = Bench::new(256);
    let short = bench.track("short", Policy::new(Algorithm::FixedWindow, 10.0, SECOND));
    let long = bench.track("long", Policy::new(Algorithm::FixedWindow, 10.0, DAY));
    for client in 0..128 {
        assert!(bench.admits(&format!("short {client}"), &[short]));
        assert!(bench.admits(&format!("long {client}"), &[long]));
    }
    bench.at(SECOND);
    for stranger in 0..32 {
        assert!(bench.admits(&format!("stranger {stranger}"), &[long]));
    }
    // Those who go are looked for in a sample, so that a few living ones among many expired may be unlucky.
    assert!(bench.store.holdings().evicted <= 2, "{:?}", bench.store.holdings());
}

#[test]
fn the_one_nearest_to_full_quota_goes_first() {
    for algorithm in algorithms() {
        let bench = Bench::new(12);
        let policy = bench.plain(algorithm, 20.0, DAY);
        for client in 1..=12_u32 {
            let cost = f64::from(client);
            bench.check(&format!("client {client}"), &[policy], cost);
        }
        for gone in 1..=6_u32 {
            // A newcomer that takes more than anybody: he is not the next to go.
            bench.check(&format!("newcomer {gone}"), &[policy], 19.0);
            for client in 1..=12_u32 {
                let remaining =
                    bench.peek(&format!("client {client}"), &[policy], 1.0).policies[0].remaining;
                let used = if client <= gone { 0 } else { client };
                assert_eq!(remaining, f64::from(20 - used), "{algorithm:?} {client} {gone}");
            }
        }
    }
}

/// K22.
#[test]
fn a_client_that_used_up_its_limit_is_denied_through_a_flood_of_strangers() {
    for algorithm in algorithms() {
        let bench = Bench::new(50);
        let policy = bench.plain(algorithm, 5.0, DAY);
        assert_eq!(exhaust(&bench, "", policy), 5.0, "{algorithm:?}");
        assert_eq!(exhaust(&bench, "client", policy), 5.0, "{algorithm:?}");
        for stranger in 0..50 * 20 {
            assert!(bench.admits(&format!("stranger {stranger}"), &[policy]), "{algorithm:?}");
            if stranger % 50 == 0 {
                assert!(is_denied(&bench, "client", policy), "{algorithm:?} {stranger}");
                assert!(is_denied(&bench, "", policy), "{algorithm:?} {stranger}");
            }
        }
        assert!(is_denied(&bench, "client", policy), "{algorithm:?}");
    }
}

/// K22, when the limit is what changed.
#[test]
fn a_client_that_a_lowered_limit_denies_is_denied_through_a_flood_of_strangers() {
    for algorithm in algorithms() {
        for several in [false, true] {
            let bench = Bench::new(50);
            let lax = bench.track("lax", Policy::new(Algorithm::FixedWindow, 1e6, DAY));
            let policies = |policy| if several { vec![policy, lax] } else { vec![policy] };
            let policy = bench.plain(algorithm, 100.0, DAY);
            assert_eq!(bench.check("client", &policies(policy), 90.0).outcome, Outcome::Allowed);
            let policy = bench.plain(algorithm, 5.0, DAY);
            while bench.admits("client", &policies(policy)) {}
            // Strangers who use up theirs at once: nobody else has quota left to lose.
            for stranger in 0..50 * 20 {
                bench.check(&format!("stranger {stranger}"), &[policy], 5.0);
            }
            // A check would be denied by the bucket that strangers share, too; a peek looks at the client's own state.
            let left = bench.peek("client", &policies(policy), 1.0);
            assert_eq!(left.outcome, Outcome::Denied, "{algorithm:?} {several}");
        }
    }
}

#[test]
fn when_all_have_used_up_their_limits_strangers_share_one_bucket() {
    for algorithm in algorithms() {
        let bench = Bench::new(8);
        let policy = bench.plain(algorithm, 3.0, DAY);
        let clients: Vec<String> = (0..8).map(|client| format!("client {client}")).collect();
        for client in &clients {
            exhaust(&bench, client, policy);
        }
        let mut admitted = 0;
        for stranger in 0..500 {
            admitted += u32::from(bench.admits(&format!("stranger {stranger}"), &[policy]));
            // They wait no longer than the bucket does.
            bench.clock.set((bench.clock.now() + 1.0) / 1000.0);
        }
        assert_eq!(admitted, 3, "{algorithm:?}");
        assert_eq!(bench.keys(), 8);
        assert_eq!(bench.store.holdings().overflowed, 500, "{algorithm:?}");
        assert_eq!(bench.store.holdings().evicted, 0, "{algorithm:?}");
        for client in &clients {
            assert!(is_denied(&bench, client, policy), "{algorithm:?}");
        }
    }
}

/// How long until strangers have states of their own again, in windows; the clock is moved by `back` first.
fn windows_until_room_comes_back(algorithm: Algorithm, back: f64) -> u32 {
    let bench = Bench::new(8);
    let policy = bench.plain(algorithm, 3.0, SECOND);
    for client in 0..8 {
        bench.check(&format!("client {client}"), &[policy], 3.0);
    }
    for stranger in 0..20 {
        bench.admits(&format!("stranger {stranger}"), &[policy]);
    }
    assert!(bench.store.holdings().overflowed > 0, "{algorithm:?}");
    for window in 0..100_u32 {
        bench.at(f64::from(window) * SECOND - back);
        let before = bench.store.holdings().overflowed;
        let all = (0..5).all(|stranger| {
            let key = format!("stranger {stranger} of window {window}");
            bench.check(&key, &[policy], 1.0).outcome == Outcome::Allowed
        });
        if all && bench.store.holdings().overflowed == before {
            return window;
        }
    }
    u32::MAX
}

#[test]
fn room_comes_back_when_those_who_used_up_their_limits_have_quota_again() {
    for algorithm in algorithms() {
        let windows = windows_until_room_comes_back(algorithm, 0.0);
        assert!(windows <= 2, "{algorithm:?}: {windows}");
    }
}

/// A11.
#[test]
fn room_comes_back_within_two_windows_after_the_clock_went_back() {
    for algorithm in algorithms() {
        let windows = windows_until_room_comes_back(algorithm, 3600.0 * SECOND);
        assert!(windows <= 3, "{algorithm:?}: {windows}");
    }
}

/// A11.
#[test]
fn the_bucket_that_strangers_share_is_free_within_two_windows_after_the_clock_went_back() {
    for algorithm in algorithms() {
        let bench = Bench::new(4);
        let policy = bench.plain(algorithm, 3.0, SECOND);
        let forever = bench.track("forever", Policy::new(Algorithm::FixedWindow, 1.0, 300.0 * DAY));
        for client in 0..4 {
            exhaust(&bench, &format!("client {client}"), forever);
        }
        while bench.admits("stranger", &[policy]) {}
        bench.at(-3600.0 * SECOND);
        assert!(!bench.admits("stranger", &[policy]), "{algorithm:?}");
        bench.at(-3598.0 * SECOND);
        assert!(bench.admits("stranger", &[policy]), "{algorithm:?}");
    }
}

#[test]
fn a_refund_makes_room_at_once() {
    for algorithm in algorithms() {
        let bench = Bench::new(4);
        let policy = bench.plain(algorithm, 3.0, DAY);
        for client in 0..4 {
            bench.check(&format!("client {client}"), &[policy], 3.0);
        }
        assert!(bench.admits("stranger", &[policy]));
        assert_eq!(bench.store.holdings().overflowed, 1, "{algorithm:?}");
        bench.refund("client 2", &[policy], 2.0);
        assert!(bench.admits("newcomer", &[policy]));
        assert_eq!(bench.store.holdings().overflowed, 1, "{algorithm:?}");
    }
}

#[test]
fn a_newcomer_with_quota_left_makes_room_for_the_next() {
    // Two shards: a place that came free in one is taken by a newcomer in the other.
    let bench = Bench::new(8192);
    let once = bench.track("once", Policy::new(Algorithm::FixedWindow, 1.0, DAY));
    let policy = bench.track("policy", Policy::new(Algorithm::FixedWindow, 100.0, DAY));
    for client in 0..8192 {
        assert!(bench.admits(&format!("client {client}"), &[once]));
    }
    for round in 0..8 {
        for stranger in 0..16 {
            bench.admits(&format!("stranger {stranger}"), &[once]);
        }
        bench.reset(&format!("client {round}"));
        let before = bench.store.holdings();
        for newcomer in 0..40 {
            bench.check(&format!("newcomer {newcomer} of {round}"), &[policy], 1.0);
        }
        let after = bench.store.holdings();
        assert!(after.evicted > before.evicted, "{before:?} {after:?}");
        // The next round begins with nobody but clients without quota.
        for newcomer in 0..40 {
            bench.reset(&format!("newcomer {newcomer} of {round}"));
        }
        while bench.keys() < 8192 {
            assert!(bench.admits(&format!("late {round}"), &[once]));
        }
    }
}

#[test]
fn a_client_whose_own_states_fill_the_store_leaves_room_for_the_next() {
    let bench = Bench::new(2);
    let first = bench.track("first", Policy::new(Algorithm::FixedWindow, 10.0, DAY));
    let second = bench.track("second", Policy::new(Algorithm::FixedWindow, 10.0, DAY));
    let once = bench.track("once", Policy::new(Algorithm::FixedWindow, 1.0, DAY));
    assert!(bench.admits("exhausted", &[once]));
    assert!(bench.admits("client", &[first]));
    // Its second state has no place beside its first and the exhausted client's.
    assert!(bench.admits("client", &[first, second]));
    bench.at(SECOND);
    let before = bench.store.holdings().overflowed;
    assert!(bench.admits("stranger", &[first]));
    assert_eq!(
        bench.store.holdings().overflowed,
        before,
        "the client's first state has quota left"
    );
    assert!(!bench.admits("exhausted", &[once]));
}

/// The exact algorithm stays exact when its entries find no room.
#[test]
fn a_log_admits_its_limit_and_no_more_where_it_has_no_room_to_grow() {
    let bench = Bench::new(4);
    let policy = bench.plain(Algorithm::SlidingWindowLog, 40.0, DAY);
    let once = bench.track("once", Policy::new(Algorithm::FixedWindow, 1.0, DAY));
    for client in 0..3 {
        assert!(bench.admits(&format!("client {client}"), &[once]));
    }
    assert_eq!(exhaust(&bench, "client", policy), 40.0);
    assert!(bench.keys() <= 4);
    bench.reset("client");
    assert_eq!(bench.keys(), 3);
}

#[test]
fn a_log_without_room_to_grow_does_not_count_again_what_has_left_the_window() {
    let bench = Bench::new(4);
    let policy = bench.plain(Algorithm::SlidingWindowLog, 20.0, SECOND);
    let once = bench.track("once", Policy::new(Algorithm::FixedWindow, 1.0, DAY));
    for client in 0..3 {
        assert!(bench.admits(&format!("client {client}"), &[once]));
    }
    for taken in 0..15 {
        bench.at(f64::from(taken));
        bench.check("client", &[policy], if taken == 14 { 6.0 } else { 1.0 });
    }
    bench.at(2.0 * SECOND);
    assert_eq!(bench.check("client", &[policy], 20.0).outcome, Outcome::Allowed);
    bench.reset("client");
    assert_eq!(bench.keys(), 3);
}

#[test]
fn a_store_of_one_key_works() {
    for algorithm in algorithms() {
        let bench = Bench::new(1);
        let policy = bench.plain(algorithm, 2.0, DAY);
        for stranger in 0..10 {
            assert!(bench.admits(&format!("stranger {stranger}"), &[policy]), "{algorithm:?}");
            assert_eq!(bench.keys(), 1);
        }
        assert!(bench.admits("stranger 9", &[policy]));
        assert!(is_denied(&bench, "stranger 9", policy));
        let admitted = (0..10).filter(|other| bench.admits(&format!("other {other}"), &[policy]));
        assert_eq!(admitted.count(), 2, "{algorithm:?}");
        assert!(is_denied(&bench, "stranger 9", policy));
    }
}

/// A23 at the bound, with reservations that a later policy's refusal has to give back.
#[test]
fn a_check_that_the_shared_bucket_denies_takes_nothing_elsewhere() {
    for algorithm in algorithms() {
        let bench = Bench::new(5);
        let lax = bench.track("lax", Policy::new(Algorithm::FixedWindow, 100.0, DAY));
        let policy = bench.plain(algorithm, 2.0, DAY);
        let of_address = [bench.track("address", Policy::new(Algorithm::FixedWindow, 50.0, DAY))];
        for client in 0..4 {
            exhaust(&bench, &format!("client {client}"), policy);
        }
        let both = [lax, policy];
        let mut admitted = 0;
        for stranger in 0..50 {
            let key = format!("stranger {stranger}");
            let charges = [bench.charge(&key, &both), bench.charge("address", &of_address)];
            let decision = bench.store.check(&charges, 1.0);
            admitted += u32::from(decision.outcome == Outcome::Allowed);
            assert!(bench.keys() <= 5, "{algorithm:?}");
        }
        assert_eq!(admitted, 2, "{algorithm:?}");
        for key in (0..50).map(|stranger| format!("stranger {stranger}")) {
            bench.reset(&key);
        }
        bench.reset("address");
        assert_eq!(bench.keys(), 4, "{algorithm:?}");
    }
}

/// A client, what it costs, and how many microseconds pass before.
fn visits() -> impl Strategy<Value = Vec<(u8, u8, u32)>> {
    let pause = prop_oneof![3 => Just(0_u32), 3 => 1..2000_u32, 1 => 2000..200_000_u32];
    prop::collection::vec((0..40_u8, 0..4_u8, pause), 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn at_any_bound_nothing_leaks_and_all_or_nothing_holds(
        max_keys in 1..24_usize, kinds in prop::collection::vec((0..5_usize, 1..24_u32), 3), visits in visits(),
    ) {
        let bench = Bench::new(max_keys);
        let track = |(index, (algorithm, limit)): (usize, &(usize, u32))| {
            let window = [20_000.0, 100_000.0, SECOND][index];
            let policy = Policy::new(Algorithm::ALL[*algorithm].1, f64::from(*limit), window);
            bench.track(&index.to_string(), Policy { max_delay: window, ..policy })
        };
        let policies: Vec<Tracked> = kinds.iter().enumerate().map(track).collect();
        let mut offset = 0.0;
        for (client, cost, pause) in visits {
            offset += f64::from(pause);
            bench.at(offset);
            let (key, address) = (format!("client {client}"), format!("address {}", client % 5));
            let charges = [bench.charge(&key, &policies[..2]), bench.charge(&address, &policies[2..])];
            let charges = if client % 3 == 0 { &charges[..1] } else { &charges[..] };
            let before = bench.store.peek(charges, 1.0);
            let decision = bench.store.check(charges, f64::from(cost));
            prop_assert!(bench.keys() <= max_keys, "{} of {max_keys}", bench.keys());
            if decision.outcome == Outcome::Denied {
                prop_assert_eq!(before, bench.store.peek(charges, 1.0));
            }
        }
        for client in 0..40 {
            bench.reset(&format!("client {client}"));
            bench.reset(&format!("address {client}"));
        }
        prop_assert_eq!(bench.keys(), 0);
    }
}
