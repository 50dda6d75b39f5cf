//! A check of several policies, or of a key that is new: all or nothing, and within the store's bound.
//!
//! Every policy is asked first. Then room is made for the states that are not there yet; where only clients over their
//! limit are left, the bucket that strangers share is asked instead. Only when all of them admit is anything taken.

use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::shard::{Entry, Shard};
use super::{Charge, Fingerprint, MemoryStore, Tracked, each};
use crate::algorithm::State;
use crate::decision::{Decision, Outcome, PolicyState};

/// The shards of a check, locked: one, or two in the order of their place, so that two checks never wait for each other.
pub(super) struct Locked<'a> {
    pub(super) guards: SmallVec<[(usize, MutexGuard<'a, Shard>); 2]>,
}

impl Locked<'_> {
    #[inline]
    pub(super) fn shard(&mut self, place: usize) -> &mut Shard {
        let index = usize::from(self.guards[0].0 != place && self.guards.len() > 1);
        &mut self.guards[index].1
    }
}

impl MemoryStore {
    /// All policies, all or nothing.
    pub(super) fn check_all(&self, charges: &[Charge<'_>], cost: f64) -> Decision {
        let mut locked = self.lock(charges);
        let now = self.clock.now();
        if let Some(decision) = self.blocked(&mut locked, charges, now) {
            return decision;
        }
        for (_, shard) in &mut locked.guards {
            shard.sweep_a_little(self, now);
        }
        Decision::of(self.decide(&mut locked, charges, cost, now), now)
    }

    /// Asks each policy, makes room for what is new, then takes.
    fn decide(
        &self,
        locked: &mut Locked<'_>,
        charges: &[Charge<'_>],
        cost: f64,
        now: f64,
    ) -> Answers {
        let mut answers: Answers = each(charges)
            .map(|(key, tracked)| self.peek_one(locked, key, tracked, cost, now))
            .collect();
        if cost == 0.0 {
            return answers;
        }
        if !answers.iter().all(|answer| answer.admits) {
            for (key, tracked) in each(charges) {
                if let Some(entry) = locked.shard(self.place(key)).find(key.of(tracked)) {
                    let weight = entry.state.weight();
                    entry.set_limit(&tracked.policy);
                    entry.state.pull_back(&tracked.policy, now);
                    self.reweigh(weight, entry.state.weight());
                }
            }
            return answers;
        }
        let ids: SmallVec<[u128; 4]> =
            each(charges).map(|(key, tracked)| key.of(tracked)).collect();
        let rooms: SmallVec<[Room; 4]> = each(charges)
            .map(|(key, tracked)| {
                self.room(locked.shard(self.place(key)), key.of(tracked), &ids, now)
            })
            .collect();
        let mut overflow = rooms.contains(&Room::None).then(|| self.overflow.lock());
        if let Some(overflow) = &mut overflow {
            self.overflowed.fetch_add(1, Ordering::Relaxed);
            for ((answer, room), (_, tracked)) in answers.iter_mut().zip(&rooms).zip(each(charges))
            {
                if *room == Room::None {
                    *answer =
                        overflow_state(overflow, tracked, now).peek(&tracked.policy, cost, now);
                }
            }
            if !answers.iter().all(|answer| answer.admits) {
                for (room, (_, tracked)) in rooms.iter().zip(each(charges)) {
                    self.reweigh(room.weight(), 0);
                    if *room == Room::None {
                        overflow_state(overflow, tracked, now).pull_back(&tracked.policy, now);
                    }
                }
                return answers;
            }
        }
        for ((answer, room), (key, tracked)) in answers.iter_mut().zip(&rooms).zip(each(charges)) {
            let shard = locked.shard(self.place(key));
            *answer = if let (Room::None, Some(overflow)) = (room, &mut overflow) {
                overflow_state(overflow, tracked, now).check(&tracked.policy, cost, now)
            } else {
                self.take(shard, key.of(tracked), tracked, cost, *room, now)
            };
        }
        answers
    }

    /// Takes `cost` from a state, new or not, that admits it and has room. The place that is reserved for it is never free
    /// in between, or another shard's check could take it.
    fn take(
        &self,
        shard: &mut Shard,
        id: u128,
        tracked: &Tracked,
        cost: f64,
        room: Room,
        now: f64,
    ) -> PolicyState {
        if let Some(entry) = shard.find(id) {
            if room == Room::Tight {
                let weight = entry.state.weight();
                entry.state.join_newest(&tracked.policy, now);
                self.reweigh(weight, entry.state.weight());
            }
            let mut answer = PolicyState::default();
            self.check_entry(&mut answer, entry, tracked, cost, room.weight(), now);
            return answer;
        }
        let mut state = State::fresh(&tracked.policy, now);
        let answer = state.check(&tracked.policy, cost, now);
        self.reweigh(room.weight(), state.weight());
        shard.insert(Entry::new(id, tracked, state));
        answer
    }

    pub(super) fn peek_one(
        &self,
        locked: &mut Locked<'_>,
        key: Fingerprint,
        tracked: &Tracked,
        cost: f64,
        now: f64,
    ) -> PolicyState {
        match locked.shard(self.place(key)).find(key.of(tracked)) {
            Some(entry) => entry.state.peek(&tracked.policy, cost, now),
            None => State::fresh(&tracked.policy, now).peek(&tracked.policy, cost, now),
        }
    }

    #[inline]
    pub(super) fn lock(&self, charges: &[Charge<'_>]) -> Locked<'_> {
        let mut places: SmallVec<[usize; 2]> =
            charges.iter().map(|charge| self.place(charge.key)).collect();
        places.sort_unstable();
        places.dedup();
        Locked {
            guards: places.iter().map(|place| (*place, self.shards[*place].0.lock())).collect(),
        }
    }

    #[inline]
    pub(super) fn blocked(
        &self,
        locked: &mut Locked<'_>,
        charges: &[Charge<'_>],
        now: f64,
    ) -> Option<Decision> {
        let left = charges.iter().filter_map(|charge| {
            locked.shard(self.place(charge.key)).blocked_for(charge.key.0, now)
        });
        let left = left.reduce(f64::max)?;
        Some(Decision { blocked_for: Some(left), ..Decision::uncounted(Outcome::Denylisted, now) })
    }

    /// Room for one more state, or for the next entries of a log.
    fn room(&self, shard: &mut Shard, id: u128, spared: &[u128], now: f64) -> Room {
        let found = shard.find(id).map(|entry| entry.state.will_grow());
        match found {
            Some(false) => Room::NotNeeded,
            _ if self.reserve() || shard.make_room(self, spared, now) => Room::Reserved,
            Some(true) => Room::Tight,
            None => Room::None,
        }
    }
}

type Answers = SmallVec<[PolicyState; 2]>;

/// What came of asking for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// The state is there already.
    NotNeeded,
    /// One place is counted as held.
    Reserved,
    /// The state is a log that may not grow: what is taken joins its newest entry.
    Tight,
    /// Only clients over their limit are left: the overflow bucket decides.
    None,
}

impl Room {
    fn weight(self) -> usize {
        usize::from(self == Self::Reserved)
    }
}

fn overflow_state<'a>(
    overflow: &'a mut Vec<(u128, State)>,
    tracked: &Tracked,
    now: f64,
) -> &'a mut State {
    let index = overflow.iter().position(|(salt, _)| *salt == tracked.salt).unwrap_or_else(|| {
        overflow.push((tracked.salt, State::fresh(&tracked.policy, now)));
        overflow.len() - 1
    });
    &mut overflow[index].1
}
