//! One shard of the memory store: a table of states, the blocks of its keys, and who goes when there is no room.
//!
//! Expired states go first, then the one nearest to full quota in a sample. A client that has nothing left is never
//! forgotten to make room for strangers, or strangers could buy him a new quota.

use std::collections::HashMap;

use hashbrown::HashTable;

use super::{MemoryStore, Tracked};
use crate::algorithm::State;
use crate::policy::Policy;
use std::sync::atomic::Ordering;

/// One state. 48 bytes: a million keys have to fit in 120 bytes each, the table's slack included.
pub(super) struct Entry {
    id: u128,
    pub(super) state: State,
    /// Index of the policy in the store, for the sweep.
    policy: u32,
    /// The limit the client has, which differs from the policy's when it is a function of the request.
    limit: u32,
}

impl Entry {
    pub(super) fn new(id: u128, tracked: &Tracked, state: State) -> Self {
        let mut entry = Self { id, state, policy: tracked.index, limit: 0 };
        entry.set_limit(&tracked.policy);
        entry
    }

    /// Notes the limit, unless it is 0: a bucket without capacity is full, and would be forgotten with what was taken from
    /// it while all are denied for a time.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a limit is whole and at most 10⁹"
    )]
    pub(super) fn set_limit(&mut self, policy: &Policy) {
        if policy.limit > 0.0 {
            self.limit = policy.limit as u32;
        }
    }

    /// The policy with the limit that the client has.
    pub(super) fn policy(&self, policies: &[(u128, Policy)]) -> Policy {
        let policy = policies[self.policy as usize].1;
        policy.with_limit(f64::from(self.limit))
    }
}

/// A denial that an operator wrote.
pub(super) struct Block {
    until: f64,
    duration: f64,
}

#[derive(Default)]
pub(super) struct Shard {
    states: HashTable<Entry>,
    pub(super) blocks: HashMap<u128, Block>,
    /// At how many blocks those that have ended are looked for.
    purge_at: usize,
    /// Where the sweep goes on.
    cursor: usize,
    /// Checks so far, going round.
    ticks: u32,
    /// Which other shard was swept last.
    elsewhere: usize,
    /// From when and until when every client of this shard is over its limit, so that looking for room would be in vain.
    crowded: Option<(f64, f64)>,
}

/// A sweep comes every so many checks,
const SWEEP: u32 = 16;
/// and looks at so many buckets, which lie side by side in memory.
const SWEPT: usize = 8;
/// So many checks later, another shard has its turn: without that, what expired would stay where nobody checks any more.
const SWEEP_ELSEWHERE: u32 = 4 * SWEEP;
/// Buckets that are looked at then, and as many more if there was something to drop.
const SWEEP_IDLE: usize = 32;
/// Buckets that every new state sweeps, so that the sweep is faster than growth.
const SWEEP_FOR_NEW: usize = 4;
/// How many states are compared for who goes.
const SAMPLE: usize = 16;
/// A shard that was looked through in vain is left alone for at least this long, in microseconds.
const CROWDED_FOR: f64 = 1000.0;
/// Fewer blocks than this are kept until they are asked for.
const FEWEST_PURGED: usize = 32;
/// Tables smaller than this are not worth shrinking.
const SMALLEST_SHRUNK: usize = 64;

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low bits of a keyed hash are a hash")]
fn hash(id: u128) -> u64 {
    id as u64
}

impl Shard {
    /// An empty shard. Each begins to help the others at its own place, so that they do not all help the same one.
    pub(super) fn new(place: usize) -> Self {
        Self { elsewhere: place, ..Self::default() }
    }

    #[inline]
    pub(super) fn find(&mut self, id: u128) -> Option<&mut Entry> {
        self.states.find_mut(hash(id), |entry| entry.id == id)
    }

    pub(super) fn insert(&mut self, entry: Entry) {
        self.look_again();
        self.states.insert_unique(hash(entry.id), entry, |entry| hash(entry.id));
    }

    /// Lets the next search for room go through the shard: there may be a client that has something left.
    pub(super) fn look_again(&mut self) {
        self.crowded = None;
    }

    pub(super) fn remove(&mut self, id: u128) -> Option<Entry> {
        self.look_again();
        let found = self.states.find_entry(hash(id), |entry| entry.id == id).ok()?;
        Some(found.remove().0)
    }

    /// How long a key is still blocked. A block that lies further ahead than it was long is from before the clock went back.
    #[inline]
    pub(super) fn blocked_for(&mut self, key: u128, now: f64) -> Option<f64> {
        if self.blocks.is_empty() {
            return None;
        }
        let block = self.blocks.get_mut(&key)?;
        block.until = block.until.min(now + block.duration);
        (block.until > now).then_some(block.until - now)
    }

    pub(super) fn block(&mut self, key: u128, duration: f64, now: f64) {
        if self.blocks.len() >= self.purge_at {
            self.blocks.retain(|_, block| block.until > now);
            self.purge_at = (self.blocks.len() * 2).max(FEWEST_PURGED);
            self.blocks.shrink_to(self.purge_at);
        }
        self.blocks.insert(key, Block { until: now + duration, duration });
    }

    /// How many keys are blocked.
    pub(super) fn count_blocked(&self, now: f64) -> usize {
        self.blocks.values().filter(|block| block.until > now).count()
    }

    pub(super) fn allocated(&self) -> usize {
        self.states.allocation_size()
    }

    /// Drops expired states from the next few buckets, every few checks, and now and then in another shard.
    #[inline]
    pub(super) fn sweep_a_little(&mut self, store: &MemoryStore, now: f64) {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(SWEEP) {
            self.sweep(store, SWEPT, &[], now);
            if self.ticks.is_multiple_of(SWEEP_ELSEWHERE) {
                self.elsewhere = self.elsewhere.wrapping_add(1);
                store.sweep_elsewhere(self.elsewhere, now);
            }
        }
    }

    /// Drops expired states from the next few buckets of a shard that may have no checks of its own, and from more of them
    /// if it finds any.
    pub(super) fn sweep_idle(&mut self, store: &MemoryStore, now: f64) {
        if self.sweep(store, SWEEP_IDLE, &[], now) {
            self.sweep(store, SWEEP_IDLE, &[], now);
        }
    }

    /// Drops expired states from the next `count` buckets, sparing some, and gives memory back when little is left. Says
    /// whether there was one.
    fn sweep(&mut self, store: &MemoryStore, count: usize, spared: &[u128], now: f64) -> bool {
        let before = self.states.len();
        let buckets = self.states.num_buckets();
        let policies = store.policies.read();
        for _ in 0..count.min(buckets) {
            self.cursor = if self.cursor + 1 >= buckets { 0 } else { self.cursor + 1 };
            let index = self.cursor;
            let expired = |entry: &Entry| {
                entry.state.expires_at(&entry.policy(&policies), now) <= now
                    && !spared.contains(&entry.id)
            };
            if self.states.get_bucket(index).is_some_and(expired) {
                self.drop_bucket(store, index, 0);
            }
        }
        if buckets > SMALLEST_SHRUNK && self.states.len() < buckets / 8 {
            self.states.shrink_to(self.states.len() * 2, |entry| hash(entry.id));
        }
        self.states.len() < before
    }

    /// Drops a state; so many of its places stay reserved.
    fn drop_bucket(&mut self, store: &MemoryStore, index: usize, reserved: usize) {
        if let Ok(found) = self.states.get_bucket_entry(index) {
            let (entry, _) = found.remove();
            store.reweigh(entry.state.weight(), reserved);
        }
    }

    /// Makes room for one more state, sparing the states of the request itself, and reserves it: what one shard drops is
    /// not for the check of another. Says whether it could.
    pub(super) fn make_room(&mut self, store: &MemoryStore, spared: &[u128], now: f64) -> bool {
        if self.crowded.is_some_and(|(from, until)| from <= now && now < until) {
            return false;
        }
        if self.sweep(store, SWEEP_FOR_NEW, spared, now) && store.reserve() {
            return true;
        }
        let buckets = self.states.num_buckets();
        let mut search = Search { best: None, seen: 0, free_at: f64::INFINITY };
        {
            let policies = store.policies.read();
            for step in 1..=buckets {
                let index = (self.cursor + step) % buckets;
                let Some(entry) = self.states.get_bucket_mut(index) else { continue };
                if spared.contains(&entry.id) {
                    // Another client's check may have it.
                    search.free_at = now;
                } else {
                    let policy = entry.policy(&policies);
                    let weight = entry.state.weight();
                    search.look(index, entry, &policy, now);
                    store.reweigh(weight, entry.state.weight());
                }
                // The sample is enough, unless all in it are over their limits: then the whole shard is looked through.
                if search.best.is_some_and(|(share, _)| search.seen >= SAMPLE || share >= EXPIRED) {
                    self.cursor = index;
                    break;
                }
            }
        }
        let Some((share, index)) = search.best else {
            let until = if search.seen == 0 { now } else { search.free_at };
            self.crowded = Some((now, until.max(now + CROWDED_FOR)));
            return false;
        };
        self.drop_bucket(store, index, 1);
        if share < EXPIRED {
            store.evicted.fetch_add(1, Ordering::Relaxed);
        }
        true
    }
}

/// The share of an expired state, which is more than any quota that is only nearly full.
const EXPIRED: f64 = 2.0;

/// Looking for the state nearest to full quota.
struct Search {
    /// Its share of the quota that is left, and its bucket.
    best: Option<(f64, usize)>,
    seen: usize,
    /// When the first of those over their limit has quota again.
    free_at: f64,
}

impl Search {
    /// Looks at one state. One that has nothing left is pulled back if the clock went back, or it would have nothing left
    /// until the clock had caught up.
    fn look(&mut self, index: usize, entry: &mut Entry, policy: &Policy, now: f64) {
        self.seen += 1;
        let remaining = entry.state.remaining(policy, now);
        let share = if entry.state.expires_at(policy, now) <= now {
            EXPIRED
        } else {
            remaining / policy.capacity
        };
        if share < EXPIRED && remaining < 1.0 {
            entry.state.pull_back(policy, now);
            self.free_at = self.free_at.min(entry.state.peek(policy, 1.0, now).next_at);
        } else if self.best.is_none_or(|(best, _)| share > best) {
            self.best = Some((share, index));
        }
    }
}
