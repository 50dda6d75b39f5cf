//! What is asked of a limiter and what it answers.

use crate::decision::{Decision, Outcome};
use crate::error::ConfigError;
use crate::store::memory::Fingerprint;

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
    pub(super) rule: RuleHandle,
    pub(super) key: Fingerprint,
    pub(super) address: Option<Fingerprint>,
    pub(super) cost: f64,
    pub(super) limit: Option<f64>,
    pub(super) since: f64,
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
    pub(super) cost: f64,
    pub(super) key: Fingerprint,
    pub(super) address: Option<Fingerprint>,
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
    /// What was charged, to be given back with [`super::Limiter::refund`]; none if nothing was counted.
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
