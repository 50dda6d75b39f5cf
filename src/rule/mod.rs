//! One rule: what a request is charged for, and what happens when nobody can say whether it may pass.
//!
//! A field of the options or of a rules file enters, a [`Rule`] leaves; [`RuleSet`] is all rules of a tenant and says
//! which of them a request comes under. Who is charged, and how, is not known here.

#[cfg(test)]
mod match_tests;
mod pattern;
mod set;
#[cfg(test)]
mod tests;

pub use set::{RuleSet, Secret};

use std::collections::HashSet;

use crate::document::{Document, Field, Value};
use crate::error::{ConfigError, code};
use crate::policy::{MOST_COST, MOST_POLICIES, POLICY_FIELDS, Policy};

/// The fields of a document that describe a rule, beside [`POLICY_FIELDS`].
pub const RULE_FIELDS: [&str; 3] = ["limits", "cost", "onFailure"];

const MOST_POLICY_NAME: usize = 64;

/// What happens to a request when the store does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureMode {
    /// It goes through.
    Open,
    /// It is refused.
    Closed,
    /// It is decided in memory, by the same policies.
    Local,
}

impl FailureMode {
    /// All of them with the words that options use.
    pub const ALL: [(&str, FailureMode); 3] =
        [("open", Self::Open), ("closed", Self::Closed), ("local", Self::Local)];
}

/// What a request is charged for.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Whose counters these are; no two rules of a set share it.
    pub name: String,
    /// Decided together, all or nothing; none when the rule skips.
    pub policies: Vec<Policy>,
    /// One for each policy, unique in the rule.
    pub policy_names: Vec<String>,
    /// Units that one request takes.
    pub cost: f64,
    /// Whether requests of this rule are not limited at all.
    pub skip: bool,
    /// Absent when the limiter's own mode holds.
    pub on_failure: Option<FailureMode>,
    /// Whether the limit of the only policy comes with each request; it is 0 here.
    pub limit_is_function: bool,
    /// Whether the cost comes with each request; it is 1 here.
    pub cost_is_function: bool,
}

impl Rule {
    /// Reads the fields of a rule from a map, which may hold the fields `extra_known` besides.
    pub fn read(
        field: &Field<'_>,
        name: String,
        extra_known: &[&str],
    ) -> Result<Self, ConfigError> {
        let known = [&POLICY_FIELDS[..], &RULE_FIELDS[..], extra_known].concat();
        field.expect_map(code::INVALID_RULES, &known)?;
        let given: Vec<&str> =
            POLICY_FIELDS.into_iter().filter(|name| field.get(name).is_some()).collect();
        let mut rule = Self { skip: false, ..Self::skipping(name) };
        match field.get("limits") {
            Some(limits) if given.is_empty() => {
                (rule.policies, rule.policy_names) = read_limits(&limits)?;
            }
            Some(limits) => {
                let problem = format!("cannot be given together with {}", given.join(", "));
                return Err(limits.fault(code::CONTRADICTION, problem));
            }
            None if given.is_empty() => {
                let problem = "needs limit and window, or limits";
                return Err(field.fault(code::MISSING_OPTION, problem));
            }
            None => {
                rule.limit_is_function =
                    field.get("limit").is_some_and(|limit| is_function(&limit));
                let policy = if rule.limit_is_function {
                    read_without_limit(field)?
                } else {
                    Policy::read(field, false)?
                };
                rule.policy_names = vec![name_of(&policy, rule.limit_is_function)];
                rule.policies = vec![policy];
            }
        }
        if let Some(cost) = field.get("cost") {
            rule.cost_is_function = is_function(&cost);
            if !rule.cost_is_function {
                rule.cost = cost.whole_number(code::INVALID_COST, 0.0, MOST_COST)?;
            }
        }
        if let Some(on_failure) = field.get("onFailure") {
            rule.on_failure = Some(on_failure.word(code::INVALID_ON_FAILURE, &FailureMode::ALL)?);
        }
        Ok(rule)
    }

    /// A rule whose requests are not limited.
    pub fn skipping(name: String) -> Self {
        Self {
            name,
            policies: Vec::new(),
            policy_names: Vec::new(),
            cost: 1.0,
            skip: true,
            on_failure: None,
            limit_is_function: false,
            cost_is_function: false,
        }
    }
}

fn is_function(field: &Field<'_>) -> bool {
    matches!(field.value(), Value::Other("a function"))
}

/// The policy of a map whose limit is a function: all of it but the limit.
fn read_without_limit(field: &Field<'_>) -> Result<Policy, ConfigError> {
    let Value::Map(members) = field.value() else { return Policy::read(field, true) };
    let members = members.iter().filter(|(key, _)| key != "limit").cloned().collect();
    let document = Document { value: Value::Map(members), line: field.line() };
    Policy::read(&Field::root(&document, field.path()), true)
}

fn name_of(policy: &Policy, limit_is_function: bool) -> String {
    let name = policy.default_name();
    match name.strip_prefix("0-") {
        Some(window) if limit_is_function => window.to_owned(),
        _ => name,
    }
}

/// The policies of `limits`, and their names.
fn read_limits(field: &Field<'_>) -> Result<(Vec<Policy>, Vec<String>), ConfigError> {
    let allowed = format!("must be a list of 1 to {MOST_POLICIES} policies");
    let items = field.items(code::INVALID_LIMITS, &allowed)?;
    if items.is_empty() || items.len() > MOST_POLICIES {
        let problem = format!("{allowed}, not of {}", items.len());
        return Err(ConfigError::of_range(code::INVALID_LIMITS, field.path(), problem)
            .at_line(field.line()));
    }
    let known = [&POLICY_FIELDS[..], &["name"]].concat();
    let mut policies = Vec::with_capacity(items.len());
    let mut names = Vec::with_capacity(items.len());
    let mut taken = HashSet::new();
    for item in &items {
        item.expect_map(code::INVALID_LIMITS, &known)?;
        if let Some(limit) = item.get("limit").filter(is_function) {
            let problem = "can be a function only where the policy stands alone, not in a list";
            return Err(limit.fault(code::INVALID_LIMIT, problem));
        }
        policies.push(Policy::read(item, false)?);
        let name = item.get("name").map(|name| policy_name(&name)).transpose()?;
        if let Some(name) = &name
            && !taken.insert(name.clone())
        {
            let problem = format!("is the name of another policy of this list: {name:?}");
            let field = format!("{}.name", item.path());
            let line = item.get("name").and_then(|name| name.line());
            return Err(ConfigError::of_type(code::INVALID_NAME, field, problem).at_line(line));
        }
        names.push(name);
    }
    // The given names come first, so that a default never takes one of them.
    let names = names
        .into_iter()
        .zip(&policies)
        .map(|(name, policy)| name.unwrap_or_else(|| free_name(&policy.default_name(), &mut taken)))
        .collect();
    Ok((policies, names))
}

/// `name`, or the first of `name-2`, `name-3`, … that is not taken.
fn free_name(name: &str, taken: &mut HashSet<String>) -> String {
    let mut free = name.to_owned();
    let mut number = 1;
    while !taken.insert(free.clone()) {
        number += 1;
        free = format!("{name}-{number}");
    }
    free
}

/// A name that can stand between the quotes of a `RateLimit-Policy` header.
fn policy_name(field: &Field<'_>) -> Result<String, ConfigError> {
    let allowed =
        format!("must be 1 to {MOST_POLICY_NAME} printable ASCII characters other than \" and \\");
    let name = field.text(code::INVALID_NAME, &allowed)?;
    let fits = (1..=MOST_POLICY_NAME).contains(&name.len())
        && name.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\'));
    if fits { Ok(name.to_owned()) } else { Err(field.out_of_range(code::INVALID_NAME, &allowed)) }
}
