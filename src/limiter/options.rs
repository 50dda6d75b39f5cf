//! A limiter's options, read and checked as a whole before anything is made of them.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{ActiveRules, Limiter};
use crate::clock::Clock;
use crate::document::{Document, Field, Value};
use crate::error::{ConfigError, code};
use crate::headers::Headers;
use crate::key::Extractor;
use crate::list::List;
use crate::policy::{POLICY_FIELDS, Policy};
use crate::rule::{RULE_FIELDS, Rule, RuleSet};
use crate::store::memory::{DEFAULT_MAX_KEYS, MemoryStore};

/// The largest `maxKeys`.
const MOST_KEYS: f64 = 1e9;
/// The name of a limiter's only rule, and of a tenant's default.
const DEFAULT_RULE: &str = "default";
/// The name of the policy that charges the address.
const PER_ADDRESS: &str = "per-address";

/// Everything a limiter is told, besides its rules.
const FIELDS: [&str; 8] =
    ["tenantId", "name", "rules", "perAddress", "allow", "deny", "mode", "maxKeys"];

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
        let per_address =
            options.get("perAddress").map(|field| read_per_address(&field)).transpose()?;
        // The rules' lists are the last that can be wrong, and are read before a policy is made known to the store: a
        // limiter that cannot be made changes nothing for those that it would have shared with.
        let active = ActiveRules::new(set, 0, &scope, &store)?;
        let per_address = per_address.map(|policy| {
            let kind = (policy.algorithm, policy.window.to_bits(), policy.aligned);
            let identity = format!("{:?}", (&scope, PER_ADDRESS, kind));
            (store.track(&identity, policy), PER_ADDRESS.to_owned())
        });
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

fn read_per_address(field: &Field<'_>) -> Result<Policy, ConfigError> {
    field.expect_map(code::INVALID_PER_ADDRESS, &POLICY_FIELDS)?;
    Policy::read(field, false)
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
