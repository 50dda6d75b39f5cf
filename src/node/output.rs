//! A decision as numbers in an array that JavaScript made; `lib/decision.js` reads it. Times are Unix milliseconds.
//!
//! | from | holds |
//! |---|---|
//! | 0 | outcome, as in [`crate::decision::Outcome`] |
//! | 1 | number of policies |
//! | 2 | index of the policy that binds |
//! | 3 | the rule's handle |
//! | 4 | without a policy: `retryAfterMs` of the decision, −1 for never |
//! | 5 | with one: `delayMs`, the longest |
//! | 6 | for a response: `Retry-After` in seconds, −1 without one |
//! | 7 | for a response: up to 9 values of numeric headers |
//! | 16 | for each policy: admits, limit, remaining, resetAt, nextAt, retryAfterMs (−1 for never), delayMs |
//!
//! What nobody reads is not written: each number costs a division.

use crate::clock::MILLISECOND;
use crate::decision::{Decision, Outcome};
use crate::headers::{Headers, retry_after};
use crate::policy::MOST_POLICIES;
use crate::whole::ceil;

const HEADERS: usize = 7;
const POLICIES: usize = 16;
const EACH: usize = 7;

/// A rule's policies and the one for addresses.
#[expect(clippy::cast_possible_truncation, reason = "79")]
pub(super) const LENGTH: u32 = (POLICIES + EACH * (MOST_POLICIES + 1)) as u32;

/// Writes a decision. `output` is at least [`LENGTH`] long; `headers` are there if a response is made of it.
#[inline]
pub(super) fn write(output: &mut [f64], decision: &Decision, headers: Option<&Headers>, rule: f64) {
    let (head, policies) = output.split_at_mut(POLICIES);
    head[0] = f64::from(decision.outcome as u8);
    head[1] = count(decision.policies.len());
    head[2] = count(decision.binding);
    head[3] = rule;
    if decision.policies.is_empty() {
        head[4] = match decision.outcome {
            Outcome::Denylisted => decision.retry_after().map_or(-1.0, milliseconds),
            _ => 0.0,
        };
    } else {
        head[5] = milliseconds(decision.delay());
    }
    for (place, state) in policies.chunks_exact_mut(EACH).zip(&decision.policies) {
        place[0] = f64::from(u8::from(state.admits));
        place[1] = state.limit;
        place[2] = state.remaining;
        place[3] = milliseconds(state.reset_at);
        place[4] = milliseconds(state.next_at);
        place[5] =
            if state.retry_after.is_finite() { milliseconds(state.retry_after) } else { -1.0 };
        place[6] = milliseconds(state.delay);
    }
    let Some(headers) = headers else { return };
    head[6] = retry_after(decision).unwrap_or(-1.0);
    let mut values = head[HEADERS..].iter_mut();
    headers.numbers(decision, |number| {
        if let Some(value) = values.next() {
            *value = number;
        }
    });
}

/// Microseconds as whole milliseconds, rounded up. Most waits are 0, and a comparison is cheaper than a division.
#[inline]
fn milliseconds(micros: f64) -> f64 {
    if micros == 0.0 { 0.0 } else { ceil(micros / MILLISECOND) }
}

#[inline]
#[expect(clippy::cast_precision_loss, reason = "nine at most")]
fn count(number: usize) -> f64 {
    number as f64
}
