//! The rules in force, ready to decide by: each policy known to the store, each list read.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::answer::{Ask, RuleHandle, Undecided};
use crate::document::{Document, Field};
use crate::error::{ConfigError, code};
use crate::list::List;
use crate::policy::{MOST_COST, Policy, most_of};
use crate::rule::{Rule, RuleSet};
use crate::store::memory::{MemoryStore, Tracked};

/// The rules in force, ready to decide by.
#[derive(Debug)]
pub struct ActiveRules {
    /// Rises with every change; a rule's handle holds it, so that a handle of older rules is noticed.
    pub version: u32,
    pub(super) set: RuleSet,
    tracked: Vec<Vec<Tracked>>,
    /// What stands, behind the others, for requests that no rule is for: nothing is counted.
    no_rule: Rule,
    pub(super) lists: Lists,
}

/// `deny` and `allow`. Whether they hold anything is asked of every check, and was 34 of its 677 instructions.
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) deny: List,
    pub(super) allow: List,
    pub(super) are_empty: bool,
    pub(super) have_addresses: bool,
}

impl Lists {
    pub(super) fn new(deny: List, allow: List) -> Self {
        let are_empty = deny.is_empty() && allow.is_empty();
        let have_addresses = deny.has_addresses() || allow.has_addresses();
        Self { deny, allow, are_empty, have_addresses }
    }
}

/// See [`super::Limiter::cached_rules`].
pub type CachedRules = arc_swap::Cache<Arc<ArcSwap<ActiveRules>>, Arc<ActiveRules>>;

impl ActiveRules {
    pub(super) fn new(
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
        Ok(Self { version, set, tracked, no_rule, lists: Lists::new(deny, allow) })
    }

    /// Whether the tenant has any rule.
    pub fn knows_tenant(&self) -> bool {
        self.set.knows_tenant()
    }

    pub(super) fn find(&self, handle: RuleHandle) -> Option<(&Rule, &[Tracked])> {
        let index = handle.index as usize;
        if handle.version != self.version {
            return None;
        }
        match self.set.rules().get(index) {
            Some(rule) => Some((rule, &self.tracked[index])),
            None => (index == self.tracked.len()).then_some((&self.no_rule, &[])),
        }
    }

    /// The policies and the cost of a refund. What the limit was does not matter to what is given back, so one that is a
    /// function need not come again.
    pub(super) fn ask_refund(&self, ask: Ask) -> Result<(&[Tracked], f64), Undecided> {
        let (rule, tracked) = self.find(ask.rule).ok_or(Undecided::StaleRule)?;
        Ok((tracked, ask.cost.map_or(Ok(rule.cost), valid_cost)?))
    }

    /// The policies and the cost of a request, both checked. What the rule itself says, as nearly always, is not copied;
    /// policies with another limit are kept in `limited`.
    #[inline]
    pub(super) fn ask<'a>(
        &'a self,
        ask: Ask,
        limited: &'a mut Vec<Tracked>,
    ) -> Result<(&'a [Tracked], f64), Undecided> {
        let (rule, tracked) = self.find(ask.rule).ok_or(Undecided::StaleRule)?;
        if ask.cost.is_none() && ask.limit.is_none() && !rule.limit_is_function {
            return Ok((tracked, rule.cost));
        }
        let cost = ask.cost.map_or(Ok(rule.cost), valid_cost)?;
        let Some(limit) = ask.limit else {
            if rule.limit_is_function {
                let problem = "has to come with the request, as it is a function of it";
                return Err(ConfigError::of_type(code::INVALID_LIMIT, "limit", problem).into());
            }
            return Ok((tracked, cost));
        };
        for one in tracked {
            limited.push(one.with_limit(valid_limit(limit, &one.policy)?));
        }
        Ok((limited, cost))
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

/// A cost: a whole number from 0 to 2^53 − 1.
fn valid_cost(cost: f64) -> Result<f64, ConfigError> {
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
