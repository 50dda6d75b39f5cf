//! The limiter: extract → match → check. A request's address and credential, or a key, enter; a [`Decision`] leaves.
//!
//! It joins what the layers below keep apart: the extractor of keys, the rules in force, the lists, and a store. Rules may
//! change while requests run: each decision is made under one set of them, and counters outlive the change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use smallvec::SmallVec;

use crate::clock::{Clock, MILLISECOND, SECOND};
use crate::decision::{Decision, Outcome};
use crate::document::{Document, Field, Value};
use crate::error::{ConfigError, code};
use crate::headers::Headers;
use crate::key::{Address, Extraction, Extractor, Key, KeyRef};
use crate::list::List;
use crate::policy::{LONGEST_WINDOW, MOST_COST, POLICY_FIELDS, Policy, most_of};
use crate::rule::{RULE_FIELDS, Rule, RuleSet};
use crate::store::memory::{Charge, DEFAULT_MAX_KEYS, Fingerprint, Holdings, MemoryStore, Tracked};

/// The largest `maxKeys`.
const MOST_KEYS: f64 = 1e9;
/// The name of a limiter's only rule, and of a tenant's default.
const DEFAULT_RULE: &str = "default";
/// The name of the policy that charges the address.
const PER_ADDRESS: &str = "per-address";

/// Everything a limiter is told, besides its rules.
const FIELDS: [&str; 8] =
    ["tenantId", "name", "rules", "perAddress", "allow", "deny", "mode", "maxKeys"];

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
    allow: List,
    deny: List,
    cost_is_function: bool,
    /// Whether rules were given, so that a request has to be matched.
    has_rules: bool,
    rules: Arc<ArcSwap<ActiveRules>>,
    store: Arc<MemoryStore>,
    /// Decisions by outcome; a derived limiter's count as its parent's.
    outcomes: Arc<[AtomicU64; 5]>,
}

/// The rules in force, ready to decide by.
#[derive(Debug)]
pub struct ActiveRules {
    /// Rises with every change; a rule's handle holds it, so that a handle of older rules is noticed.
    pub version: u32,
    set: RuleSet,
    tracked: Vec<Vec<Tracked>>,
    /// What stands, behind the others, for requests that no rule is for: nothing is counted.
    no_rule: Rule,
    allow: List,
    deny: List,
}

/// See [`Limiter::cached_rules`].
pub type CachedRules = arc_swap::Cache<Arc<ArcSwap<ActiveRules>>, Arc<ActiveRules>>;

/// A rule, as requests name it: its index and the version of the rules it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleHandle {
    /// Of the rules.
    pub version: u32,
    /// In the rules.
    pub index: u32,
}

/// What was charged for a request, so that it can be given back.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    rule: RuleHandle,
    key: Fingerprint,
    address: Option<Fingerprint>,
    cost: f64,
    limit: Option<f64>,
    since: f64,
}

/// A request with its rule, cost and limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    /// Which rule decides.
    pub rule: RuleHandle,
    /// What it costs; without it, what the rule says.
    pub cost: Option<f64>,
    /// The limit of this request alone.
    pub limit: Option<f64>,
}

/// Why a request was not decided.
#[derive(Clone, Debug, PartialEq)]
pub enum Undecided {
    /// The address is needed, which was not read.
    NeedsAddress,
    /// What was given is no address.
    InvalidAddress,
    /// The token names a signing key that is not here.
    NeedsKeys,
    /// The rule is of rules that are not in force any more.
    StaleRule,
    /// The cost or the limit is out of its range.
    Invalid(ConfigError),
}

impl From<ConfigError> for Undecided {
    fn from(error: ConfigError) -> Self {
        Self::Invalid(error)
    }
}

/// A decision, what was asked, and whom it was about.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The decision.
    pub decision: Decision,
    /// What was asked.
    pub ask: Ask,
    /// What it cost.
    cost: f64,
    key: Fingerprint,
    address: Option<Fingerprint>,
}

impl Default for Answer {
    /// An answer to nothing yet.
    fn default() -> Self {
        let rule = RuleHandle { version: u32::MAX, index: u32::MAX };
        Self {
            decision: Decision::uncounted(Outcome::Degraded, 0.0),
            ask: Ask { rule, cost: None, limit: None },
            cost: 0.0,
            key: Fingerprint::default(),
            address: None,
        }
    }
}

impl Answer {
    /// What was charged, to be given back with [`Limiter::refund`]; none if nothing was counted.
    pub fn receipt(&self) -> Option<Receipt> {
        let counted = self.decision.outcome == Outcome::Allowed && self.cost > 0.0;
        let Self { ask, cost, key, address, .. } = *self;
        counted.then_some(Receipt {
            rule: ask.rule,
            key,
            address,
            cost,
            limit: ask.limit,
            since: self.decision.now,
        })
    }
}

impl Limiter {
    /// Reads a limiter's options. `rules` is the document of the rules file, if `rules` names one.
    pub fn new(
        options: &Document,
        rules: Option<&Document>,
        clock: Option<Arc<Clock>>,
    ) -> Result<Self, ConfigError> {
        let options = Field::root(options, "");
        let tenant = match options.get("tenantId") {
            Some(field) => name(&field, code::INVALID_TENANT_ID)?,
            None => "default",
        };
        let max_keys = options
            .get("maxKeys")
            .map(|field| field.whole_number(code::INVALID_MAX_KEYS, 1.0, MOST_KEYS));
        let max_keys = max_keys.transpose()?.map(to_count);
        let store = if let Some(field) = options.get("name") {
            MemoryStore::named(tenant, name(&field, code::INVALID_NAME)?, clock, max_keys)?
        } else {
            let clock = clock.unwrap_or_else(|| Arc::new(Clock::System));
            Arc::new(MemoryStore::new(clock, max_keys.unwrap_or(DEFAULT_MAX_KEYS)))
        };
        Self::over(store, tenant.to_owned(), String::new(), &options, rules)
    }

    /// A limiter with options of its own over the same store, whose counters are kept apart by `scope`.
    pub fn derive(&self, options: &Document, scope: &str) -> Result<Self, ConfigError> {
        let options = Field::root(options, "");
        for fixed in ["tenantId", "maxKeys", "rules"] {
            if let Some(field) = options.get(fixed) {
                return Err(field.fault(code::CONTRADICTION, "is an option of the whole limiter"));
            }
        }
        let scope = match options.get("name") {
            Some(field) => name(&field, code::INVALID_NAME)?,
            None => scope,
        };
        let store = Arc::clone(&self.store);
        let derived = Self::over(store, self.tenant.clone(), scope.to_owned(), &options, None)?;
        Ok(Self { outcomes: Arc::clone(&self.outcomes), ..derived })
    }

    fn over(
        store: Arc<MemoryStore>,
        tenant: String,
        scope: String,
        options: &Field<'_>,
        rules: Option<&Document>,
    ) -> Result<Self, ConfigError> {
        let known =
            [&FIELDS[..], &POLICY_FIELDS, &RULE_FIELDS, &Extractor::FIELDS, &Headers::FIELDS]
                .concat();
        options.expect_map(code::INVALID_OPTIONS, &known)?;
        let extractor = Extractor::read(options)?;
        let headers = Headers::read(options)?;
        let shadow = match options.get("mode") {
            Some(field) => {
                field.word(code::INVALID_MODE, &[("enforce", false), ("shadow", true)])?
            }
            None => false,
        };
        let list = |field: &str, code| {
            options.get(field).map_or_else(|| Ok(List::default()), |field| List::read(&field, code))
        };
        let (allow, deny) =
            (list("allow", code::INVALID_ALLOW)?, list("deny", code::INVALID_DENY)?);
        let set = read_rules(options, rules, &tenant, &known)?;
        let cost_is_function =
            options.get("cost").is_some_and(|cost| matches!(cost.value(), Value::Other(_)));
        let per_address = options
            .get("perAddress")
            .map(|field| read_per_address(&field, &scope, &store))
            .transpose()?;
        let active = ActiveRules::new(set, 0, &scope, &store)?;
        Ok(Self {
            tenant,
            scope,
            extractor,
            headers,
            shadow,
            per_address,
            allow,
            deny,
            cost_is_function,
            has_rules: options.get("rules").is_some(),
            rules: Arc::new(ArcSwap::from_pointee(active)),
            store,
            outcomes: Arc::default(),
        })
    }

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
    /// blocks hold: then the handle is of [`ActiveRules::no_rule`].
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
        [&self.allow, &self.deny, &rules.allow, &rules.deny].iter().any(|list| list.has_addresses())
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
        let (policies, cost) = rules.ask(ask)?;
        let fingerprint = self.fingerprint(key);
        let decision = match self.verdict(rules, address.as_ref(), key) {
            Some(outcome) => Decision::uncounted(outcome, self.store.clock().now()),
            None => self.store.peek(&[Charge { key: fingerprint, policies: &policies }], cost),
        };
        *answer = Answer { decision, ask, cost: 0.0, key: fingerprint, address: None };
        Ok(())
    }

    /// Gives `cost` back to a key.
    pub fn refund_key(&self, rules: &ActiveRules, key: &Key, ask: Ask) -> Result<(), Undecided> {
        // What the limit was does not matter to what is given back, so one that is a function need not come again.
        let (rule, policies) = rules.find(ask.rule).ok_or(Undecided::StaleRule)?;
        let cost = ask.cost.map_or(Ok(rule.cost), valid_cost)?;
        let charge = Charge { key: self.fingerprint(key.by_ref()), policies };
        self.store.refund(&[charge], cost, None);
        Ok(())
    }

    /// Gives back what was charged for a request; nothing, if the rules have changed since.
    pub fn refund(&self, receipt: &Receipt) {
        let rules = self.rules.load();
        let ask = Ask { rule: receipt.rule, cost: Some(receipt.cost), limit: receipt.limit };
        let Ok((policies, cost)) = rules.ask(ask) else { return };
        let mut charges: SmallVec<[Charge<'_>; 2]> = SmallVec::new();
        charges.push(Charge { key: receipt.key, policies: &policies });
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
        let (policies, cost) = rules.ask(ask)?;
        answer.ask = ask;
        answer.cost = cost;
        answer.key = self.fingerprint(key);
        answer.address = charged;
        let decision = &mut answer.decision;
        let charge = Charge { key: answer.key, policies: &policies };
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
        if [&self.deny, &self.allow, &rules.deny, &rules.allow].iter().all(|list| list.is_empty()) {
            return None;
        }
        let key = key.to_key();
        let on = |list: &List| !list.is_empty() && list.matches(address, &key);
        if on(&self.deny) || on(&rules.deny) {
            Some(Outcome::Denylisted)
        } else if on(&self.allow) || on(&rules.allow) {
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

impl ActiveRules {
    fn new(
        set: RuleSet,
        version: u32,
        scope: &str,
        store: &MemoryStore,
    ) -> Result<Self, ConfigError> {
        let list = |document: Option<&Document>, name, code| {
            document.map_or_else(
                || Ok(List::default()),
                |document| List::read(&Field::root(document, name), code),
            )
        };
        let allow = list(set.allow.as_ref(), "allow", code::INVALID_ALLOW)?;
        let deny = list(set.deny.as_ref(), "deny", code::INVALID_DENY)?;
        let tracked = set.rules().iter().map(|rule| track(rule, scope, store)).collect();
        let no_rule = Rule::skipping(String::new());
        Ok(Self { version, set, tracked, no_rule, allow, deny })
    }

    /// Whether the tenant has any rule.
    pub fn knows_tenant(&self) -> bool {
        self.set.knows_tenant()
    }

    fn find(&self, handle: RuleHandle) -> Option<(&Rule, &[Tracked])> {
        let index = handle.index as usize;
        if handle.version != self.version {
            return None;
        }
        match self.set.rules().get(index) {
            Some(rule) => Some((rule, &self.tracked[index])),
            None => (index == self.tracked.len()).then_some((&self.no_rule, &[])),
        }
    }

    /// The policies and the cost of a request, both checked.
    #[inline]
    fn ask(&self, ask: Ask) -> Result<(std::borrow::Cow<'_, [Tracked]>, f64), Undecided> {
        let (rule, tracked) = self.find(ask.rule).ok_or(Undecided::StaleRule)?;
        let cost = match ask.cost {
            Some(cost) => valid_cost(cost)?,
            None => rule.cost,
        };
        let Some(limit) = ask.limit else {
            if rule.limit_is_function {
                let problem = "has to come with the request, as it is a function of it";
                return Err(ConfigError::of_type(code::INVALID_LIMIT, "limit", problem).into());
            }
            return Ok((tracked.into(), cost));
        };
        let limited = tracked
            .iter()
            .map(|one| valid_limit(limit, &one.policy).map(|limit| one.with_limit(limit)));
        Ok((limited.collect::<Result<Vec<_>, _>>()?.into(), cost))
    }
}

/// Makes the policies of a rule known to the store. A state is named by what it counts, not by its limit, so that it
/// outlives a change of the limit; two policies of one rule that count the same way are told apart by their order.
fn track(rule: &Rule, scope: &str, store: &MemoryStore) -> Vec<Tracked> {
    let kind = |policy: &Policy| (policy.algorithm, policy.window.to_bits(), policy.aligned);
    let mut tracked = Vec::with_capacity(rule.policies.len());
    for (index, policy) in rule.policies.iter().enumerate() {
        let same =
            rule.policies[..index].iter().filter(|other| kind(other) == kind(policy)).count();
        let identity = format!("{:?}", (scope, &rule.name, kind(policy), same));
        tracked.push(store.track(&identity, *policy));
    }
    tracked
}

fn read_rules(
    options: &Field<'_>,
    file: Option<&Document>,
    tenant: &str,
    known: &[&str],
) -> Result<RuleSet, ConfigError> {
    let Some(rules) = options.get("rules") else {
        return Ok(RuleSet::single(Rule::read(options, DEFAULT_RULE.to_owned(), known)?));
    };
    for other in POLICY_FIELDS.iter().chain(&["limits"]) {
        if let Some(field) = options.get(other) {
            return Err(field
                .fault(code::CONTRADICTION, "cannot be given together with rules, which say it"));
        }
    }
    if let Some(cost) = options.get("cost")
        && !matches!(cost.value(), Value::Other(_))
    {
        return Err(cost.fault(
            code::CONTRADICTION,
            "can only be a function where rules say what a request costs",
        ));
    }
    match (rules.value(), file) {
        (Value::Text(_), Some(file)) => RuleSet::read(&Field::root(file, ""), tenant),
        (Value::Map(_), _) => RuleSet::read(&rules, tenant),
        _ => Err(rules.wrong_type(code::INVALID_RULES, "must be the path of a file or an object")),
    }
}

fn read_per_address(
    field: &Field<'_>,
    scope: &str,
    store: &MemoryStore,
) -> Result<(Tracked, String), ConfigError> {
    field.expect_map(code::INVALID_PER_ADDRESS, &POLICY_FIELDS)?;
    let policy = Policy::read(field, false)?;
    let identity = format!(
        "{:?}",
        (scope, PER_ADDRESS, policy.algorithm, policy.window.to_bits(), policy.aligned)
    );
    Ok((store.track(&identity, policy), PER_ADDRESS.to_owned()))
}

/// A cost: a whole number from 0 to 2^53 − 1.
pub fn valid_cost(cost: f64) -> Result<f64, ConfigError> {
    if cost.fract() == 0.0 && (0.0..=MOST_COST).contains(&cost) {
        return Ok(cost + 0.0);
    }
    let problem = format!("must be a whole number from 0 to {MOST_COST}, not {cost}");
    Err(ConfigError::of_range(code::INVALID_COST, "cost", problem))
}

fn valid_limit(limit: f64, policy: &Policy) -> Result<f64, ConfigError> {
    let most = most_of(policy.algorithm);
    if limit.fract() == 0.0 && (0.0..=most).contains(&limit) {
        return Ok(limit + 0.0);
    }
    let problem = format!("must be a whole number from 0 to {most}, not {limit}");
    Err(ConfigError::of_range(code::INVALID_LIMIT, "limit", problem))
}

/// Text that names a tenant or a limiter: 1 to 128 characters.
fn name<'a>(field: &Field<'a>, code: &'static str) -> Result<&'a str, ConfigError> {
    let allowed = "must be text of 1 to 128 characters";
    let text = field.text(code, allowed)?;
    if (1..=128).contains(&text.chars().count()) {
        Ok(text)
    } else {
        Err(field.out_of_range(code, allowed))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be whole and from 1 to 10⁹"
)]
fn to_count(number: f64) -> usize {
    number as usize
}
