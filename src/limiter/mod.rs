//! The limiter: extract → match → check. A request's address and credential, or a key, enter; a [`Decision`] leaves.
//!
//! It joins what the layers below keep apart: the extractor of keys, the rules in force, the lists, and a store. Rules may
//! change while requests run: each decision is made under one set of them, and counters outlive the change.

mod answer;
mod options;
mod rules;

pub use answer::{Answer, Ask, Receipt, RuleHandle, Undecided};
use rules::Lists;
pub use rules::{ActiveRules, CachedRules};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use smallvec::SmallVec;

use crate::clock::{MILLISECOND, SECOND};
use crate::decision::{Decision, Outcome};
use crate::document::{Document, Field};
use crate::error::{ConfigError, code};
use crate::headers::Headers;
use crate::key::{Address, Extraction, Extractor, Key, KeyRef};
use crate::list::List;
use crate::policy::{LONGEST_WINDOW, Policy};
use crate::rule::RuleSet;
use crate::store::memory::{Charge, Fingerprint, Holdings, MemoryStore, Tracked};

/// A limiter over a memory store.
#[derive(Debug)]
pub struct Limiter {
    tenant: String,
    /// Keeps the counters of a derived limiter apart from its parent's.
    scope: String,
    extractor: Extractor,
    headers: Headers,
    shadow: bool,
    per_address: Option<(Tracked, String)>,
    lists: Lists,
    cost_is_function: bool,
    /// Whether rules were given, so that a request has to be matched.
    has_rules: bool,
    rules: Arc<ArcSwap<ActiveRules>>,
    store: Arc<MemoryStore>,
    /// Decisions by outcome; a derived limiter's count as its parent's.
    outcomes: Arc<[AtomicU64; 5]>,
}

impl Limiter {
    /// Puts other rules in force. A document with any fault changes nothing.
    pub fn replace_rules(&self, document: &Document) -> Result<(), ConfigError> {
        let set = RuleSet::read(&Field::root(document, ""), &self.tenant)?;
        let version = self.rules.load().version.wrapping_add(1);
        self.rules.store(Arc::new(ActiveRules::new(set, version, &self.scope, &self.store)?));
        Ok(())
    }

    /// The rules in force now. A decision is made under one set of them.
    pub fn rules(&self) -> arc_swap::Guard<Arc<ActiveRules>> {
        self.rules.load()
    }

    /// The rules in force, for a caller that asks often and from one thread: it looks for a change at a fraction of the cost.
    pub fn cached_rules(&self) -> CachedRules {
        CachedRules::new(Arc::clone(&self.rules))
    }

    /// The rule of a request, or none when a rule skips it. Where no rule is for it, it is not limited either, but lists and
    /// blocks hold: then the handle is of [`ActiveRules`]' rule that counts nothing.
    pub fn match_route(
        &self,
        method: &str,
        pattern: Option<&str>,
        path: &str,
    ) -> Option<RuleHandle> {
        let rules = self.rules.load();
        let index = match rules.set.match_route(method, pattern, path) {
            Some(index) => index,
            None if rules.set.skips(method, pattern, path) => return None,
            None => rules.set.rules().len(),
        };
        Some(RuleHandle { version: rules.version, index: u32::try_from(index).ok()? })
    }

    /// Who is asking.
    pub fn extractor(&self) -> &Extractor {
        &self.extractor
    }

    /// What responses say.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Whether decisions are only reported.
    pub fn is_shadow(&self) -> bool {
        self.shadow
    }

    /// Whether a request's rule depends on its method and path; if not, it is always the one with the handle 0.
    pub fn has_rules(&self) -> bool {
        self.has_rules
    }

    /// Whether every request brings its limit.
    pub fn limit_is_function(&self) -> bool {
        self.rules.load().set.rules().iter().any(|rule| rule.limit_is_function)
    }

    /// Whether every request brings its cost.
    pub fn cost_is_function(&self) -> bool {
        self.cost_is_function
    }

    /// Whether no request can be decided without its address.
    pub fn always_reads_address(&self) -> bool {
        self.extractor.always_reads_address() || self.lists_addresses(&self.rules.load())
    }

    #[inline]
    fn lists_addresses(&self, rules: &ActiveRules) -> bool {
        self.lists.have_addresses || rules.lists.have_addresses
    }

    /// The store's time, as `exp` and `nbf` of a token need it.
    pub fn unix_seconds(&self) -> f64 {
        self.store.clock().now() / SECOND
    }

    /// Decides an extracted request. `answer` is written only when a decision was made.
    pub fn check_request(
        &self,
        answer: &mut Answer,
        rules: &ActiveRules,
        extraction: &Extraction,
        ask: Ask,
    ) -> Result<(), Undecided> {
        let identity = match extraction {
            Extraction::Found(identity) => identity,
            Extraction::NeedsAddress => return Err(Undecided::NeedsAddress),
            Extraction::InvalidAddress => return Err(Undecided::InvalidAddress),
            Extraction::NeedsKeys => return Err(Undecided::NeedsKeys),
        };
        let charges_address = identity.made_up && self.per_address.is_some();
        let address_read = identity.address.is_some() || identity.no_address;
        if !address_read && (charges_address || self.lists_addresses(rules)) {
            return Err(Undecided::NeedsAddress);
        }
        let charged = charges_address.then(|| match &identity.address {
            Some(address) => self.fingerprint(self.extractor.address_key(address).by_ref()),
            None => self.fingerprint(Key::no_address().by_ref()),
        });
        self.check(answer, rules, identity.key.by_ref(), identity.address.as_ref(), charged, ask)
    }

    /// Decides a key that the caller names.
    #[inline]
    pub fn check_key(
        &self,
        answer: &mut Answer,
        rules: &ActiveRules,
        key: KeyRef<'_>,
        ask: Ask,
    ) -> Result<(), Undecided> {
        let address = self.address_of(rules, key);
        self.check(answer, rules, key, address.as_ref(), None, ask)
    }

    /// What [`Limiter::check_key`] would answer.
    pub fn peek_key(
        &self,
        answer: &mut Answer,
        rules: &ActiveRules,
        key: KeyRef<'_>,
        ask: Ask,
    ) -> Result<(), Undecided> {
        let address = self.address_of(rules, key);
        let mut limited = Vec::new();
        let (policies, cost) = rules.ask(ask, &mut limited)?;
        let fingerprint = self.fingerprint(key);
        let decision = match self.verdict(rules, address.as_ref(), key) {
            Some(outcome) => Decision::uncounted(outcome, self.store.clock().now()),
            None => self.store.peek(&[Charge { key: fingerprint, policies }], cost),
        };
        *answer = Answer { decision, ask, cost: 0.0, key: fingerprint, address: None };
        Ok(())
    }

    /// Gives `cost` back to a key.
    pub fn refund_key(&self, rules: &ActiveRules, key: &Key, ask: Ask) -> Result<(), Undecided> {
        let (policies, cost) = rules.ask_refund(ask)?;
        let charge = Charge { key: self.fingerprint(key.by_ref()), policies };
        self.store.refund(&[charge], cost, None);
        Ok(())
    }

    /// Gives back what was charged for a request; nothing, if the rules have changed since.
    pub fn refund(&self, receipt: &Receipt) {
        let rules = self.rules.load();
        let ask = Ask { rule: receipt.rule, cost: Some(receipt.cost), limit: receipt.limit };
        let mut limited = Vec::new();
        let Ok((policies, cost)) = rules.ask(ask, &mut limited) else { return };
        let mut charges: SmallVec<[Charge<'_>; 2]> = SmallVec::new();
        charges.push(Charge { key: receipt.key, policies });
        if let (Some(key), Some((tracked, _))) = (receipt.address, &self.per_address) {
            charges.push(Charge { key, policies: std::slice::from_ref(tracked) });
        }
        self.store.refund(&charges, cost, Some(receipt.since));
    }

    /// Forgets what was counted for a key.
    pub fn reset(&self, key: &Key) {
        self.store.reset(self.fingerprint(key.by_ref()));
    }

    /// Denies a key for `milliseconds`.
    pub fn block(&self, key: &Key, milliseconds: f64) -> Result<(), ConfigError> {
        let most = LONGEST_WINDOW / MILLISECOND;
        if !(milliseconds.fract() == 0.0 && (1.0..=most).contains(&milliseconds)) {
            let problem = format!(
                "must be a whole number of milliseconds from 1 to {most}, not {milliseconds}"
            );
            return Err(ConfigError::of_range(code::INVALID_DURATION, "ms", problem));
        }
        self.store.block(self.fingerprint(key.by_ref()), milliseconds * MILLISECOND);
        Ok(())
    }

    /// Ends a block. Says whether there was one.
    pub fn unblock(&self, key: &Key) -> bool {
        self.store.unblock(self.fingerprint(key.by_ref()))
    }

    /// Decisions since the start by [`Outcome`], in its order.
    pub fn outcomes(&self) -> [u64; 5] {
        std::array::from_fn(|index| self.outcomes[index].load(Ordering::Relaxed))
    }

    /// How full the store is.
    pub fn holdings(&self) -> Holdings {
        self.store.holdings()
    }

    /// The texts of the header fields for a decision.
    pub fn header_texts(&self, answer: &Answer) -> Vec<String> {
        let rules = self.rules.load();
        let Some((rule, tracked)) = rules.find(answer.ask.rule) else { return Vec::new() };
        let with_limit = |tracked: &Tracked| {
            answer.ask.limit.map_or(tracked.policy, |limit| tracked.policy.with_limit(limit))
        };
        let mut policies: Vec<Policy> = tracked.iter().map(with_limit).collect();
        let mut names = rule.policy_names.clone();
        if let Some((tracked, name)) = &self.per_address {
            policies.push(tracked.policy);
            names.push(name.clone());
        }
        policies.truncate(answer.decision.policies.len());
        self.headers.texts(&answer.decision, &policies, &names)
    }

    /// A rule's name and those of its policies, the one for addresses last.
    pub fn describe(&self, handle: RuleHandle) -> Option<(String, Vec<String>, f64)> {
        let rules = self.rules.load();
        let (rule, _) = rules.find(handle)?;
        let per_address = self.per_address.iter().map(|(_, name)| name.clone());
        let names = rule.policy_names.iter().cloned().chain(per_address).collect();
        Some((rule.name.clone(), names, rule.cost))
    }

    #[inline]
    fn check(
        &self,
        answer: &mut Answer,
        rules: &ActiveRules,
        key: KeyRef<'_>,
        address: Option<&Address>,
        charged: Option<Fingerprint>,
        ask: Ask,
    ) -> Result<(), Undecided> {
        let mut limited = Vec::new();
        let (policies, cost) = rules.ask(ask, &mut limited)?;
        answer.ask = ask;
        answer.cost = cost;
        answer.key = self.fingerprint(key);
        answer.address = charged;
        let decision = &mut answer.decision;
        let charge = Charge { key: answer.key, policies };
        if let Some(outcome) = self.verdict(rules, address, key) {
            *decision = Decision::uncounted(outcome, self.store.clock().now());
        } else if let (Some(key), Some((tracked, _)), false) =
            (charged, &self.per_address, policies.is_empty())
        {
            let address = Charge { key, policies: std::slice::from_ref(tracked) };
            self.store.check_into(decision, &[charge, address], cost);
        } else {
            self.store.check_into(decision, &[charge], cost);
        }
        if answer.decision.outcome != Outcome::Allowed || !policies.is_empty() {
            self.count(answer.decision.outcome);
        }
        Ok(())
    }

    /// What the lists say: denied before allowed.
    #[inline]
    fn verdict(
        &self,
        rules: &ActiveRules,
        address: Option<&Address>,
        key: KeyRef<'_>,
    ) -> Option<Outcome> {
        if self.lists.are_empty && rules.lists.are_empty {
            return None;
        }
        let key = key.to_key();
        let on = |list: &List| !list.is_empty() && list.matches(address, &key);
        if on(&self.lists.deny) || on(&rules.lists.deny) {
            Some(Outcome::Denylisted)
        } else if on(&self.lists.allow) || on(&rules.lists.allow) {
            Some(Outcome::Allowlisted)
        } else {
            None
        }
    }

    /// The address that a key is, if it is one and a list holds addresses.
    #[inline]
    fn address_of(&self, rules: &ActiveRules, key: KeyRef<'_>) -> Option<Address> {
        if !self.lists_addresses(rules) {
            return None;
        }
        let text = key.to_key().text();
        Address::parse(text.strip_prefix("ip:").unwrap_or(&text))
    }

    #[inline]
    fn fingerprint(&self, key: KeyRef<'_>) -> Fingerprint {
        self.store.fingerprint(key.as_bytes())
    }

    #[inline]
    fn count(&self, outcome: Outcome) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}
