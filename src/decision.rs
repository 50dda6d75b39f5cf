//! What a check answers: one [`PolicyState`] for each policy, and the policy that binds.

use smallvec::SmallVec;

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Every policy admitted the request, and it was counted.
    Allowed = 0,
    /// A policy denied it, and nothing was counted.
    Denied = 1,
    /// The client is on the allowlist: nothing was counted.
    Allowlisted = 2,
    /// The client is on the denylist or blocked: nothing was counted.
    Denylisted = 3,
    /// The store did not answer, and the failure mode decided.
    Degraded = 4,
}

/// One policy's part of a decision. All times are microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PolicyState {
    /// Whether this policy alone would let the request pass.
    pub admits: bool,
    /// The capacity: the limit, or for the buckets the burst.
    pub limit: f64,
    /// The largest cost that would pass now; whole, never negative.
    pub remaining: f64,
    /// When the full quota is back: `now` if nothing is used.
    pub reset_at: f64,
    /// When more quota comes: `now` if nothing is used.
    pub next_at: f64,
    /// How long until the same cost would pass: 0 when it passes now, infinite when it never can.
    pub retry_after: f64,
    /// How long the caller should wait before going on; only the leaky bucket says more than 0.
    pub delay: f64,
}

/// The answer to a check.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// How it came out.
    pub outcome: Outcome,
    /// The store's time when it was made.
    pub now: f64,
    /// The policy that binds, an index into `policies`.
    pub binding: usize,
    /// Every policy's state, in the order of the rule; empty unless the outcome is allowed or denied.
    pub policies: SmallVec<[PolicyState; 2]>,
    /// For a client that was blocked for a time: how long the block lasts.
    pub blocked_for: Option<f64>,
}

impl Decision {
    /// A decision that counted nothing.
    pub fn uncounted(outcome: Outcome, now: f64) -> Self {
        Self { outcome, now, binding: 0, policies: SmallVec::new(), blocked_for: None }
    }

    /// Makes this the decision of a single policy, whose state `check` writes.
    #[inline]
    pub fn set_one(&mut self, now: f64, check: impl FnOnce(&mut PolicyState)) {
        if self.policies.len() != 1 {
            self.policies.clear();
            self.policies.push(PolicyState::default());
        }
        let policy = &mut self.policies[0];
        check(policy);
        self.outcome = if policy.admits { Outcome::Allowed } else { Outcome::Denied };
        self.now = now;
        self.binding = 0;
        self.blocked_for = None;
    }

    /// The decision of `policies`: denied if one of them denies.
    pub fn of(mut policies: SmallVec<[PolicyState; 2]>, now: f64) -> Self {
        let denied = policies.iter().any(|policy| !policy.admits);
        if denied {
            // Nobody waits in a queue for a request that was refused.
            policies.iter_mut().for_each(|policy| policy.delay = 0.0);
        }
        let outcome = if denied { Outcome::Denied } else { Outcome::Allowed };
        Self { outcome, now, binding: binding(&policies), policies, blocked_for: None }
    }

    /// The state of the policy that binds.
    pub fn bound(&self) -> Option<&PolicyState> {
        self.policies.get(self.binding)
    }

    /// How long until the request would pass: none unless it was refused, and none when it never can.
    pub fn retry_after(&self) -> Option<f64> {
        let wait = match self.outcome {
            Outcome::Denied => self.bound()?.retry_after,
            Outcome::Denylisted => self.blocked_for?,
            Outcome::Allowed | Outcome::Allowlisted | Outcome::Degraded => return None,
        };
        wait.is_finite().then_some(wait)
    }

    /// The longest delay of all policies.
    pub fn delay(&self) -> f64 {
        self.policies.iter().fold(0.0, |longest, p| longest.max(p.delay))
    }
}

/// Denied: the longest wait; allowed: the least remaining; ties go to the first.
fn binding(policies: &[PolicyState]) -> usize {
    let denied = policies.iter().any(|p| !p.admits);
    let mut best = 0;
    for (index, policy) in policies.iter().enumerate().skip(1) {
        let tighter = if denied {
            policy.retry_after > policies[best].retry_after
        } else {
            policy.remaining < policies[best].remaining
        };
        if tighter {
            best = index;
        }
    }
    best
}
