//! The store under threads: exact, within its bound, and never stuck.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sluicegate::clock::{Clock, SECOND};
use sluicegate::decision::Outcome;
use sluicegate::policy::{Algorithm, Policy};
use sluicegate::store::memory::{Charge, MemoryStore, Tracked};

use crate::support::{Bench, DAY, algorithms};

const THREADS: u32 = 8;
/// A thread that waits longer than this waits for ever.
const WATCHDOG: Duration = Duration::from_secs(20);

/// Runs `work` on eight threads and gives what they gave; fails when one does not come back.
fn on_threads<T: Send + 'static>(work: impl Fn(u32) -> T + Send + Sync + 'static) -> Vec<T> {
    let (work, (done, results)) = (Arc::new(work), mpsc::channel());
    for number in 0..THREADS {
        let (work, done) = (Arc::clone(&work), done.clone());
        thread::spawn(move || done.send(work(number)));
    }
    (0..THREADS).map(|_| results.recv_timeout(WATCHDOG).unwrap()).collect()
}

#[test]
fn eight_threads_on_one_key_are_admitted_as_often_as_the_limit_says() {
    for algorithm in algorithms() {
        let bench = Arc::new(Bench::new(1_000_000));
        let policy = bench.plain(algorithm, 1000.0, DAY);
        let admitted =
            on_threads(move |_| (0..400).filter(|_| bench.admits("client", &[policy])).count());
        assert_eq!(admitted.iter().sum::<usize>(), 1000, "{algorithm:?}");
    }
}

/// A23 under threads: the policies of a key and of its address count the same, whoever denies.
#[test]
fn all_or_nothing_is_exact_under_threads() {
    for algorithm in algorithms() {
        let bench = Arc::new(Bench::new(1_000_000));
        let lax = bench.track("lax", Policy::new(Algorithm::FixedWindow, 10_000.0, DAY));
        let of_address = bench.track("address", Policy::new(Algorithm::FixedWindow, 9_000.0, DAY));
        let strict = bench.plain(algorithm, 300.0, DAY);
        let shared = Arc::clone(&bench);
        let admitted = on_threads(move |number| {
            // Each thread names the two charges in its own order, so that the shards are met in both.
            let (both, one) = ([lax, strict], [of_address]);
            let mut charges = [shared.charge("client", &both), shared.charge("address", &one)];
            if number % 2 == 0 {
                charges.reverse();
            }
            (0..200)
                .filter(|_| shared.store.check(&charges, 1.0).outcome == Outcome::Allowed)
                .count()
        });
        assert_eq!(admitted.iter().sum::<usize>(), 300, "{algorithm:?}");
        let left = bench.peek("client", &[lax, strict], 1.0).policies;
        assert_eq!((left[0].remaining, left[1].remaining), (9_700.0, 0.0), "{algorithm:?}");
        assert_eq!(bench.peek("address", &[of_address], 1.0).policies[0].remaining, 8_700.0);
    }
}

/// K21 under threads: places are counted before they are taken, in all shards together.
#[test]
fn eight_threads_of_new_keys_never_hold_more_than_the_bound() {
    let bench = Arc::new(Bench::new(8192));
    let policy = bench.plain(Algorithm::FixedWindow, 10.0, DAY);
    let log = bench.plain(Algorithm::SlidingWindowLog, 100.0, DAY);
    let most = on_threads({
        let bench = Arc::clone(&bench);
        move |number| {
            let mut most = 0;
            for stranger in 0..6000 {
                let key = format!("stranger {stranger} of {number}");
                assert!(bench.admits(&key, &[policy, log]));
                most = most.max(bench.keys());
            }
            most
        }
    });
    assert!(most.iter().all(|most| *most <= 8192), "{most:?}");
    assert_eq!(bench.keys(), 8192);
}

/// N12, N04.
#[test]
fn everything_at_once_on_few_keys_never_stalls() {
    const KEYS: u32 = 4;
    let clock = Arc::new(Clock::System);
    // As small as this, the store is at its bound all the time; it has two shards nevertheless.
    let store = Arc::new(MemoryStore::new(clock, 8192));
    let track = move |store: &MemoryStore, limit: f64| -> Vec<Tracked> {
        let track = |algorithm| {
            let policy = Policy::new(algorithm, limit, 0.05 * SECOND);
            store.track(&format!("{algorithm:?}"), policy)
        };
        algorithms().map(track).collect()
    };
    let denied = Arc::new(AtomicU32::new(0));
    let until = Instant::now() + Duration::from_millis(1500);
    let rounds = on_threads({
        let (store, denied) = (Arc::clone(&store), Arc::clone(&denied));
        move |number| {
            let mut policies = track(&store, 20.0);
            let mut round = 0_u32;
            while Instant::now() < until {
                round = round.wrapping_add(1);
                let key = |offset: u32| {
                    store.fingerprint(&((round + number + offset) % KEYS).to_le_bytes())
                };
                let one = Charge { key: key(0), policies: &policies[..1] };
                let all = Charge { key: key(0), policies: &policies };
                let other = Charge { key: key(1), policies: &policies[1..3] };
                let decision = match round % 4 {
                    0 => store.check(&[one], 1.0),
                    1 => store.check(&[all, other], 1.0),
                    2 => store.check(&[other, all], 2.0),
                    _ => store.peek(&[other, one], 1.0),
                };
                if decision.outcome == Outcome::Denied {
                    denied.fetch_add(1, Ordering::Relaxed);
                }
                let stranger = store.fingerprint(format!("{number} {round}").as_bytes());
                store.check(&[Charge { key: stranger, policies: &policies }], 1.0);
                match round % 16 {
                    3 => store.refund(&[all, other], 1.0, None),
                    5 => store.reset(key(2)),
                    7 => store.block(key(3), 0.001 * SECOND),
                    9 => drop(store.unblock(key(3))),
                    11 => assert!(store.holdings().keys <= 8192),
                    13 => policies = track(&store, f64::from(10 + round % 20)),
                    15 => drop(store.allocated()),
                    _ => {}
                }
            }
            round
        }
    });
    assert!(rounds.iter().all(|rounds| *rounds > 20), "{rounds:?}");
    assert!(denied.load(Ordering::Relaxed) > 0);
}
