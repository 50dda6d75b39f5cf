//! The memory store: states of one process, shared by its threads.
//!
//! A check enters as [`Charge`]s (a key and the policies it is charged under) and leaves as a [`Decision`], made under the
//! lock of the key's shard. There is no timer and no thread: expired states are swept a few buckets at a time by the
//! checks themselves. The store holds at most `max_keys` states; who goes when it is full is decided in `shard.rs`.
//!
//! Keys are not kept: a state is found by a 128-bit keyed hash of its key, so that a key of any length costs 16 bytes
//! and nobody without the process's random seed can make two keys meet.

mod decide;
mod fingerprint;
mod named;
mod shard;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::algorithm::State;
use crate::clock::Clock;
use crate::decision::{Decision, Outcome, PolicyState};
use crate::policy::Policy;
use shard::{Entry, Shard};

/// The default of `max_keys`.
pub const DEFAULT_MAX_KEYS: usize = 1_000_000;
/// Keys a shard is made for: few enough that growing one is over in a fraction of a millisecond.
const KEYS_PER_SHARD: usize = 4096;
const MOST_SHARDS: usize = 1024;

/// A key as the store knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fingerprint(u128);

/// A policy that the store knows: [`MemoryStore::track`] makes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tracked {
    /// Mixed into a key's fingerprint; what tells the states of one key under different policies apart.
    salt: u128,
    /// Where the store looks the policy up when it meets a state while sweeping.
    index: u32,
    /// The numbers to decide by.
    pub policy: Policy,
}

/// A key and the policies that it is charged under.
#[derive(Clone, Copy, Debug)]
pub struct Charge<'a> {
    /// Whose states.
    pub key: Fingerprint,
    /// Which policies, in the order they are reported.
    pub policies: &'a [Tracked],
}

/// Counts of what the store had to do to keep its bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// States held, a log counting one more for each 16 entries.
    pub keys: usize,
    /// States that were dropped before their time to make room.
    pub evicted: u64,
    /// Checks that were decided in the overflow bucket.
    pub overflowed: u64,
    /// Keys that are blocked.
    pub blocked: usize,
}

/// The store. See the module's head.
pub struct MemoryStore {
    shards: Box<[Padded]>,
    clock: Arc<Clock>,
    max_keys: usize,
    /// Policies by index, for the sweep. Taken for reading under a shard's lock, never the other way round.
    policies: RwLock<Vec<(u128, Policy)>>,
    /// One state for each policy, shared by all new keys for which no room can be made. Locked under a shard's lock.
    overflow: Mutex<Vec<(u128, State)>>,
    held: AtomicUsize,
    /// Blocks that are kept, whether they last or have ended.
    blocked: AtomicUsize,
    evicted: AtomicU64,
    overflowed: AtomicU64,
    seed: (u64, u64),
}

/// A shard on cache lines of its own, so that two threads in two shards do not slow each other down.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore")
            .field("max_keys", &self.max_keys)
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store of at most `max_keys` states.
    pub fn new(clock: Arc<Clock>, max_keys: usize) -> Self {
        let max_keys = max_keys.max(1);
        let count = (max_keys / KEYS_PER_SHARD).clamp(1, MOST_SHARDS).next_power_of_two();
        let shards = (0..count).map(|place| Padded(Mutex::new(Shard::new(place)))).collect();
        Self {
            shards,
            clock,
            max_keys,
            policies: RwLock::default(),
            overflow: Mutex::default(),
            held: AtomicUsize::new(0),
            blocked: AtomicUsize::new(0),
            evicted: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            seed: random_seed(),
        }
    }

    /// The store's clock.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    /// The bound.
    pub fn max_keys(&self) -> usize {
        self.max_keys
    }

    /// The fingerprint of a key's canonical bytes.
    #[inline]
    pub fn fingerprint(&self, key: &[u8]) -> Fingerprint {
        Fingerprint(fingerprint::hash(self.seed, key))
    }

    /// Makes a policy known under `identity`: states are kept across a change of its limit, and apart from all others.
    pub fn track(&self, identity: &str, policy: Policy) -> Tracked {
        let salt = self.fingerprint(identity.as_bytes()).0;
        let mut policies = self.policies.write();
        let index = policies.iter().position(|(known, _)| *known == salt).unwrap_or(policies.len());
        match policies.get_mut(index) {
            Some(known) => known.1 = policy,
            None => policies.push((salt, policy)),
        }
        Tracked { salt, index: u32::try_from(index).unwrap_or(u32::MAX), policy }
    }

    /// Decides a request: all policies of all charges take `cost`, or none does.
    pub fn check(&self, charges: &[Charge<'_>], cost: f64) -> Decision {
        let mut decision = Decision::uncounted(Outcome::Degraded, 0.0);
        self.check_into(&mut decision, charges, cost);
        decision
    }

    /// [`MemoryStore::check`] for the hot path: the decision is written where it is wanted. Nearly every check is of one key
    /// under one policy: one lock, one look into the table, nothing allocated.
    #[inline]
    pub fn check_into(&self, decision: &mut Decision, charges: &[Charge<'_>], cost: f64) {
        if let [Charge { key, policies: [tracked] }] = charges {
            let mut shard = self.shards[self.place(*key)].0.lock();
            // Under the lock, here and below: a thread that waited must not decide by the time before it waited.
            let now = self.clock.now();
            if let Some(left) = shard.blocked_for(key.0, now) {
                *decision = Decision {
                    blocked_for: Some(left),
                    ..Decision::uncounted(Outcome::Denylisted, now)
                };
                return;
            }
            shard.sweep_a_little(self, now);
            let id = key.of(tracked);
            if let Some(entry) = shard.find(id) {
                if !entry.state.will_grow() {
                    return decision.set_one(now, |answer| {
                        self.check_entry(answer, entry, tracked, cost, 0, now);
                    });
                }
            } else if self.check_new(decision, &mut shard, id, tracked, cost, now) {
                return;
            }
        }
        *decision = self.check_all(charges, cost);
    }

    /// What [`MemoryStore::check`] would answer; takes nothing, writes nothing.
    pub fn peek(&self, charges: &[Charge<'_>], cost: f64) -> Decision {
        let mut locked = self.lock(charges);
        let now = self.clock.now();
        if let Some(decision) = self.blocked(&mut locked, charges, now) {
            return decision;
        }
        Decision::of(
            each(charges)
                .map(|(key, tracked)| self.peek_one(&mut locked, key, tracked, cost, now))
                .collect(),
            now,
        )
    }

    /// Gives `cost` back under every policy: what was taken at `since`, or without it the newest.
    pub fn refund(&self, charges: &[Charge<'_>], cost: f64, since: Option<f64>) {
        let mut locked = self.lock(charges);
        let now = self.clock.now();
        for (key, tracked) in each(charges) {
            let shard = locked.shard(self.place(key));
            if let Some(entry) = shard.find(key.of(tracked)) {
                let weight = entry.state.weight();
                // Under a limit of 0, or one that is not known here, a bucket would be emptied by what it is given.
                let policy = match tracked.policy {
                    policy if policy.limit > 0.0 => policy,
                    _ => entry.policy(&self.policies.read()),
                };
                entry.state.refund(&policy, cost, since, now);
                self.reweigh(weight, entry.state.weight());
                shard.look_again();
            }
        }
    }

    /// Forgets a key under all policies.
    pub fn reset(&self, key: Fingerprint) {
        let salts: Vec<u128> = self.policies.read().iter().map(|(salt, _)| *salt).collect();
        let mut shard = self.shards[self.place(key)].0.lock();
        for salt in salts {
            if let Some(entry) = shard.remove(key.0 ^ salt) {
                self.reweigh(entry.state.weight(), 0);
            }
        }
    }

    /// Denies a key for `duration` microseconds, whatever its states say.
    pub fn block(&self, key: Fingerprint, duration: f64) {
        let mut shard = self.shards[self.place(key)].0.lock();
        let now = self.clock.now();
        let before = shard.blocks.len();
        shard.block(key.0, duration, now);
        self.reblock(before, shard.blocks.len());
    }

    /// Ends a block. Says whether there was one.
    pub fn unblock(&self, key: Fingerprint) -> bool {
        let mut shard = self.shards[self.place(key)].0.lock();
        let now = self.clock.now();
        let was_blocked = shard.blocked_for(key.0, now).is_some();
        let before = shard.blocks.len();
        shard.blocks.remove(&key.0);
        self.reblock(before, shard.blocks.len());
        was_blocked
    }

    /// How full the store is and what that cost.
    pub fn holdings(&self) -> Holdings {
        let now = self.clock.now();
        let count_blocked = |shard: &Padded| shard.0.lock().count_blocked(now);
        // Blocks that have ended are still there until somebody asks for them, so those that last are counted.
        let any_blocks = self.blocked.load(Ordering::Relaxed) > 0;
        let blocked = if any_blocks { self.shards.iter().map(count_blocked).sum() } else { 0 };
        Holdings {
            keys: self.held.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
            overflowed: self.overflowed.load(Ordering::Relaxed),
            blocked,
        }
    }

    /// Bytes that the tables have allocated; logs come on top.
    pub fn allocated(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.lock().allocated()).sum()
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "any bits of the hash do")]
    fn place(&self, key: Fingerprint) -> usize {
        (key.0 >> 64) as usize & (self.shards.len() - 1)
    }

    #[inline]
    fn check_entry(
        &self,
        answer: &mut PolicyState,
        entry: &mut Entry,
        tracked: &Tracked,
        cost: f64,
        reserved: usize,
        now: f64,
    ) {
        if cost > 0.0 {
            entry.set_limit(&tracked.policy);
        }
        let weight = entry.state.weight();
        entry.state.check_into(answer, &tracked.policy, cost, now);
        self.reweigh(weight + reserved, entry.state.weight());
    }

    /// Decides about a key that is not held, and holds it if it took anything. Says whether there was room; without it,
    /// nothing is decided. A flood of new keys is let through at half the cost of [`MemoryStore::check_all`].
    fn check_new(
        &self,
        decision: &mut Decision,
        shard: &mut Shard,
        id: u128,
        tracked: &Tracked,
        cost: f64,
        now: f64,
    ) -> bool {
        let mut state = State::fresh(&tracked.policy, now);
        decision.set_one(now, |answer| state.check_into(answer, &tracked.policy, cost, now));
        if cost == 0.0 || decision.outcome == Outcome::Denied {
            return true;
        }
        if !self.reserve() {
            return false;
        }
        self.reweigh(1, state.weight());
        shard.insert(Entry::new(id, tracked, state));
        true
    }

    /// Sweeps a shard unless somebody is at it. The caller holds another shard's lock, so it does not wait.
    fn sweep_elsewhere(&self, place: usize, now: f64) {
        if let Some(mut shard) = self.shards[place & (self.shards.len() - 1)].0.try_lock() {
            shard.sweep_idle(self, now);
        }
    }

    /// Counts one place as held, if one is free.
    fn reserve(&self) -> bool {
        let more = |held: usize| (held < self.max_keys).then_some(held + 1);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    #[inline]
    fn reweigh(&self, before: usize, after: usize) {
        match after.cmp(&before) {
            std::cmp::Ordering::Greater => self.held.fetch_add(after - before, Ordering::Relaxed),
            std::cmp::Ordering::Less => self.held.fetch_sub(before - after, Ordering::Relaxed),
            std::cmp::Ordering::Equal => 0,
        };
    }

    fn reblock(&self, before: usize, after: usize) {
        self.blocked.fetch_add(after, Ordering::Relaxed);
        self.blocked.fetch_sub(before, Ordering::Relaxed);
    }
}

impl Fingerprint {
    /// The name of this key's state under a policy.
    #[inline]
    fn of(self, tracked: &Tracked) -> u128 {
        self.0 ^ tracked.salt
    }
}

impl Tracked {
    /// The same policy for a request that has a limit of its own.
    #[must_use]
    pub fn with_limit(self, limit: f64) -> Self {
        Self { policy: self.policy.with_limit(limit), ..self }
    }
}

/// Every key with every policy it is charged under, in the order of the report.
#[inline]
fn each<'a>(charges: &'a [Charge<'a>]) -> impl Iterator<Item = (Fingerprint, &'a Tracked)> {
    charges
        .iter()
        .flat_map(|charge| charge.policies.iter().map(move |tracked| (charge.key, tracked)))
}

/// A seed that nobody outside the process knows, from the standard library's source of random hash keys.
fn random_seed() -> (u64, u64) {
    use std::hash::{BuildHasher, RandomState};
    (RandomState::new().hash_one(1), RandomState::new().hash_one(2))
}
