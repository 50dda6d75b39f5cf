//! The store and the model are told the same and answer the same, field by field.

use proptest::prelude::*;
use sluicegate::decision::{Decision, Outcome, PolicyState};
use sluicegate::policy::{Algorithm, Policy};
use sluicegate::store::memory::{Charge, Tracked};

use crate::model::{Model, Name, Rule, whole};
use crate::support::{Bench, START};

const KEYS: usize = 4;
/// The keys of the second charge, as of an address.
const ADDRESSES: usize = 2;

#[derive(Clone, Debug)]
enum Step {
    Check {
        key: usize,
        cost: u32,
        limit: Option<u32>,
        address: bool,
    },
    Peek {
        key: usize,
        cost: u32,
        address: bool,
    },
    Refund {
        key: usize,
        cost: u32,
    },
    /// Gives back what an earlier check took.
    Return(prop::sample::Index),
    Reset {
        key: usize,
    },
    Limit {
        policy: prop::sample::Index,
        limit: u32,
    },
    /// Moves the clock by thousandths of the first policy's window.
    Move(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let cost = || prop_oneof![5 => Just(1_u32), 3 => 2..6_u32, 1 => Just(0)];
    let key = || 0..KEYS;
    let limit = || prop_oneof![1 => Just(0_u32), 6 => 1..30_u32];
    let asked_limit = prop_oneof![8 => Just(None), 1 => limit().prop_map(Some)];
    let step = prop_oneof![
        12 => (key(), cost(), asked_limit, any::<bool>())
            .prop_map(|(key, cost, limit, address)| Step::Check { key, cost, limit, address }),
        2 => (key(), cost(), any::<bool>())
            .prop_map(|(key, cost, address)| Step::Peek { key, cost, address }),
        1 => (key(), 0..8_u32).prop_map(|(key, cost)| Step::Refund { key, cost }),
        1 => any::<prop::sample::Index>().prop_map(Step::Return),
        1 => key().prop_map(|key| Step::Reset { key }),
        1 => (any::<prop::sample::Index>(), limit())
            .prop_map(|(policy, limit)| Step::Limit { policy, limit }),
        4 => (0..150_i64).prop_map(Step::Move),
        2 => (150..2500_i64).prop_map(Step::Move),
        2 => (-400..0_i64).prop_map(Step::Move),
    ];
    prop::collection::vec(step, 1..100)
}

fn policies() -> impl Strategy<Value = Vec<Policy>> {
    let window = prop_oneof![Just(1e3), Just(1e6), Just(1.7e6), Just(6e7)];
    let policy = (0..5_usize, 1..30_u32, window, 1..40_u32, 0..4_u32).prop_map(
        |(algorithm, limit, window, burst, extra)| {
            let algorithm = Algorithm::ALL[algorithm].1;
            let mut policy = Policy::new(algorithm, f64::from(limit), window);
            if matches!(algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket) && extra > 1 {
                policy = policy.with_burst(f64::from(burst));
            }
            policy.aligned = algorithm == Algorithm::FixedWindow && extra == 0;
            policy.max_delay = f64::from(extra) * window;
            policy
        },
    );
    prop::collection::vec(policy, 1..=3)
}

/// Both sides of a trace.
struct Trace {
    bench: Bench,
    model: Model,
    tracked: Vec<Tracked>,
    offset: f64,
    /// Charges that were admitted: key, cost, when.
    receipts: Vec<(usize, u32, f64)>,
}

impl Trace {
    fn new(policies: &[Policy]) -> Self {
        let bench = Bench::new(1_000_000);
        let tracked = policies
            .iter()
            .enumerate()
            .map(|(index, policy)| bench.track(&index.to_string(), *policy))
            .collect();
        Self { bench, model: Model::default(), tracked, offset: 0.0, receipts: Vec::new() }
    }

    fn now(&self) -> i128 {
        whole(START + self.offset)
    }

    fn rules(&self) -> Vec<Rule> {
        self.tracked.iter().map(|tracked| Rule::of(&tracked.policy)).collect()
    }

    /// The policies that a key is charged under, and the last one that its address is charged under if it is.
    fn asked(&self, key: usize, address: bool, limit: Option<u32>) -> (Vec<Tracked>, Vec<Tracked>) {
        let limited = |one: &Tracked| limit.map_or(*one, |limit| one.with_limit(f64::from(limit)));
        let of_key = if key.is_multiple_of(2) { &self.tracked[..] } else { &self.tracked[..1] };
        let of_address = if address { &self.tracked[self.tracked.len() - 1..] } else { &[] };
        (of_key.iter().map(limited).collect(), of_address.iter().map(limited).collect())
    }

    /// The same as the model names it.
    fn named(&self, key: usize, asked: &(Vec<Tracked>, Vec<Tracked>)) -> Vec<(Name, Rule)> {
        let name = |key, index, one: &Tracked| ((key, index), Rule::of(&one.policy));
        let of_key = asked.0.iter().enumerate().map(|(index, one)| name(key, index, one));
        let last = self.tracked.len() - 1;
        let of_address = asked.1.iter().map(|one| name(address_of(key), last, one));
        of_key.chain(of_address).collect()
    }

    fn charges<'a>(&self, key: usize, asked: &'a (Vec<Tracked>, Vec<Tracked>)) -> Vec<Charge<'a>> {
        let mut charges = vec![self.bench.charge(&key.to_string(), &asked.0)];
        if !asked.1.is_empty() {
            charges.push(self.bench.charge(&address_of(key).to_string(), &asked.1));
        }
        charges
    }

    fn reset(&mut self, key: usize) {
        self.bench.reset(&key.to_string());
        self.model.reset(key);
    }

    /// Takes away the one freedom that the store has: when it forgets a state that says nothing. What such a state says
    /// shows again once the clock goes back or a limit changes.
    fn forget_spent(&mut self) {
        for (key, _) in self.model.spent(&self.rules(), self.now()) {
            self.reset(key);
        }
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Check { key, cost, limit, address } => {
                self.forget_spent();
                let asked = self.asked(key, address, limit);
                let decision = self.bench.store.check(&self.charges(key, &asked), f64::from(cost));
                let named = self.named(key, &asked);
                let now = self.now();
                self.compare(&decision, &self.model.peek(&named, i128::from(cost), now), true);
                let answers = self.model.check(&named, i128::from(cost), now);
                self.compare(&decision, &answers, false);
                if decision.outcome == Outcome::Allowed && cost > 0 {
                    self.receipts.push((key, cost, decision.now));
                }
            }
            Step::Peek { key, cost, address } => {
                let asked = self.asked(key, address, None);
                let decision = self.bench.store.peek(&self.charges(key, &asked), f64::from(cost));
                let answers =
                    self.model.peek(&self.named(key, &asked), i128::from(cost), self.now());
                self.compare(&decision, &answers, false);
            }
            Step::Refund { key, cost } => self.refund(key, cost, None),
            Step::Return(which) => {
                if !self.receipts.is_empty() {
                    let (key, cost, since) = *which.get(&self.receipts);
                    self.refund(key, cost, Some(since));
                }
            }
            Step::Reset { key } => self.reset(key),
            Step::Limit { policy, limit } => {
                self.forget_spent();
                let index = policy.index(self.tracked.len());
                let policy = self.tracked[index].policy;
                if limit > 0 || !policy.has_burst {
                    let policy = policy.with_limit(f64::from(limit));
                    self.tracked[index] = self.bench.track(&index.to_string(), policy);
                }
                for key in 0..KEYS {
                    self.run(&Step::Check { key, cost: 1, limit: None, address: true });
                }
            }
            Step::Move(thousandths) => {
                #[expect(clippy::cast_precision_loss, reason = "small")]
                let part = thousandths as f64 / 1000.0;
                if part < 0.0 {
                    self.forget_spent();
                }
                self.offset += (part * self.tracked[0].policy.window).round();
                self.bench.at(self.offset);
            }
        }
    }

    fn refund(&mut self, key: usize, cost: u32, since: Option<f64>) {
        let asked = self.asked(key, false, None);
        self.bench.store.refund(&self.charges(key, &asked), f64::from(cost), since);
        let (named, now) = (self.named(key, &asked), self.now());
        self.model.refund(&named, i128::from(cost), since.map(whole), now);
    }

    /// Holds a decision to the model's; `verdict_only` where the numbers are of before the check.
    fn compare(&self, decision: &Decision, answers: &[PolicyState], verdict_only: bool) {
        let denied = answers.iter().any(|answer| !answer.admits);
        let outcome = if denied { Outcome::Denied } else { Outcome::Allowed };
        assert_eq!(decision.outcome, outcome);
        if verdict_only {
            return;
        }
        assert_eq!(decision.policies.as_slice(), answers);
        assert_eq!(decision.now, START + self.offset);
        assert_eq!(decision.blocked_for, None);
        // Denied: the longest wait binds; allowed: the least that remains; the first of several.
        let tightness = |answer: &PolicyState| {
            if denied { answer.retry_after } else { -answer.remaining }
        };
        let tightest = answers.iter().map(tightness).fold(f64::NEG_INFINITY, f64::max);
        let binding = answers.iter().position(|answer| tightness(answer) == tightest);
        assert_eq!(Some(decision.binding), binding);
        let wait = answers[decision.binding].retry_after;
        assert_eq!(decision.retry_after(), (denied && wait.is_finite()).then_some(wait));
        assert_eq!(decision.delay(), answers.iter().map(|answer| answer.delay).fold(0.0, f64::max));
    }
}

fn address_of(key: usize) -> usize {
    KEYS + key % ADDRESSES
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_store_answers_what_a_naive_model_answers(policies in policies(), steps in steps()) {
        let mut trace = Trace::new(&policies);
        for step in &steps {
            trace.run(step);
        }
        // What is held comes back: nothing was counted twice, nothing was lost.
        for key in 0..KEYS + ADDRESSES {
            trace.reset(key);
        }
        prop_assert_eq!(trace.bench.keys(), 0);
    }
}
