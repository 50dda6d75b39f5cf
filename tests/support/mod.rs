//! What tests of the memory store share: a store on a clock that stands still, and policies of every algorithm.

use std::sync::Arc;

use sluicegate::clock::{Clock, MILLISECOND, SECOND};
use sluicegate::decision::{Decision, Outcome};
use sluicegate::policy::{Algorithm, Policy};
use sluicegate::store::memory::{Charge, MemoryStore, Tracked};

/// Where the clocks of tests start, in microseconds: no boundary of any window in use.
pub(crate) const START: f64 = 1_700_000_000_123_457.0;
/// A window long enough that nothing refills while a test runs its checks.
pub(crate) const DAY: f64 = 86_400.0 * SECOND;

/// The five algorithms.
pub(crate) fn algorithms() -> impl Iterator<Item = Algorithm> {
    Algorithm::ALL.iter().map(|(_, algorithm)| *algorithm)
}

/// A memory store and the clock that it is on.
pub(crate) struct Bench {
    pub(crate) clock: Arc<Clock>,
    pub(crate) store: MemoryStore,
}

impl Bench {
    /// An empty store at [`START`].
    pub(crate) fn new(max_keys: usize) -> Self {
        let clock = Arc::new(Clock::manual(START / MILLISECOND));
        Self { store: MemoryStore::new(Arc::clone(&clock), max_keys), clock }
    }

    /// Puts the clock to so many microseconds after [`START`], or before it.
    pub(crate) fn at(&self, offset: f64) {
        self.clock.set((START + offset) / MILLISECOND);
        assert_eq!(self.clock.now(), START + offset, "the clock is exact");
    }

    /// A policy that the store knows by its name and by what it counts.
    pub(crate) fn track(&self, name: &str, policy: Policy) -> Tracked {
        let Policy { algorithm, window, aligned, .. } = policy;
        self.store.track(&format!("{name} {algorithm:?} {window} {aligned}"), policy)
    }

    /// Tracks a policy whose queue, if it is one, has no bound but its length.
    pub(crate) fn plain(&self, algorithm: Algorithm, limit: f64, window: f64) -> Tracked {
        self.track("plain", Policy { max_delay: window, ..Policy::new(algorithm, limit, window) })
    }

    /// Charges one key under some policies.
    pub(crate) fn check(&self, key: &str, policies: &[Tracked], cost: f64) -> Decision {
        self.store.check(&[self.charge(key, policies)], cost)
    }

    /// What a check would answer.
    pub(crate) fn peek(&self, key: &str, policies: &[Tracked], cost: f64) -> Decision {
        self.store.peek(&[self.charge(key, policies)], cost)
    }

    /// Whether one more unit is admitted, and takes it.
    pub(crate) fn admits(&self, key: &str, policies: &[Tracked]) -> bool {
        self.check(key, policies, 1.0).outcome == Outcome::Allowed
    }

    /// A key with the policies it is charged under.
    pub(crate) fn charge<'a>(&self, key: &str, policies: &'a [Tracked]) -> Charge<'a> {
        Charge { key: self.store.fingerprint(key.as_bytes()), policies }
    }

    /// Gives back what a key took last.
    pub(crate) fn refund(&self, key: &str, policies: &[Tracked], cost: f64) {
        self.store.refund(&[self.charge(key, policies)], cost, None);
    }

    /// Forgets a key.
    pub(crate) fn reset(&self, key: &str) {
        self.store.reset(self.store.fingerprint(key.as_bytes()));
    }

    /// States held.
    pub(crate) fn keys(&self) -> usize {
        self.store.holdings().keys
    }
}
