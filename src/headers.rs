//! Response headers: a decision enters, the values of the configured header fields leave. No other place knows a
//! rate-limit header's name.
//!
//! Fields whose value is one number leave as numbers, the structured ones as text, so that the usual response costs no
//! string on its way to JavaScript. All times are rounded up: a client that waits as long as it is told is never early.
//!
//! | form | fields | source |
//! |---|---|---|
//! | `x-ratelimit` | `X-RateLimit-Limit`, `-Remaining`, `-Reset` (Unix seconds, or seconds from now) | common practice |
//! | `draft-6` | `RateLimit-Limit`, `-Remaining`, `-Reset` (seconds from now), `RateLimit-Policy` | draft-ietf-httpapi-ratelimit-headers-06 |
//! | `draft-7` | `RateLimit`, one dictionary, and `RateLimit-Policy` | the same, -07 |
//! | `draft-8` | `RateLimit` and `RateLimit-Policy`, every policy a named item | the same, -08 to -11 |
//!
//! `pk`, the optional partition key of `draft-8`, is left out: a client's key is nobody else's business.

use crate::clock::SECOND;
use crate::decision::{Decision, PolicyState};
use crate::document::{Field, Value};
use crate::error::{ConfigError, code};
use crate::policy::Policy;
use crate::whole::ceil;

/// The largest integer of a structured field (RFC 9651, section 3.3.1).
const LARGEST_INTEGER: f64 = 999_999_999_999_999.0;

/// One way of telling clients where they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `X-RateLimit-*`.
    XRateLimit,
    /// IETF draft 6.
    Draft6,
    /// IETF draft 7.
    Draft7,
    /// IETF drafts 8 to 11.
    Draft8,
}

const FORMS: [(&str, Form); 4] = [
    ("x-ratelimit", Form::XRateLimit),
    ("draft-6", Form::Draft6),
    ("draft-7", Form::Draft7),
    ("draft-8", Form::Draft8),
];

/// What `X-RateLimit-Reset` holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reset {
    /// Seconds since the Unix epoch.
    #[default]
    Unix,
    /// Seconds from now.
    Delta,
}

/// The name of a field and whether its value is text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The field's name, as HTTP/1.1 shows it.
    pub name: &'static str,
    /// Whether its value comes from [`Headers::texts`]; else from [`Headers::numbers`].
    pub is_text: bool,
}

/// The fields that a limiter sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    forms: Vec<Form>,
    reset: Reset,
}

impl Headers {
    /// The options read here.
    pub const FIELDS: [&str; 2] = ["headers", "reset"];

    /// Reads `headers` and `reset`.
    pub fn read(options: &Field<'_>) -> Result<Self, ConfigError> {
        let forms = match options.get("headers") {
            None => vec![Form::XRateLimit],
            Some(field) => read_forms(&field)?,
        };
        let reset = match options.get("reset") {
            None => Reset::default(),
            Some(field) => field
                .word(code::INVALID_RESET, &[("unix", Reset::Unix), ("delta", Reset::Delta)])?,
        };
        Ok(Self { forms, reset })
    }

    /// The fields in the order in which their values are given.
    pub fn names(&self) -> Vec<Header> {
        let number = |name| Header { name, is_text: false };
        let text = |name| Header { name, is_text: true };
        let of = |form: &Form| match form {
            Form::XRateLimit => {
                vec![
                    number("X-RateLimit-Limit"),
                    number("X-RateLimit-Remaining"),
                    number("X-RateLimit-Reset"),
                ]
            }
            Form::Draft6 => vec![
                number("RateLimit-Limit"),
                number("RateLimit-Remaining"),
                number("RateLimit-Reset"),
                text("RateLimit-Policy"),
            ],
            Form::Draft7 | Form::Draft8 => vec![text("RateLimit"), text("RateLimit-Policy")],
        };
        self.forms.iter().flat_map(of).collect()
    }

    /// Whether any field is text.
    pub fn has_texts(&self) -> bool {
        self.forms.iter().any(|form| *form != Form::XRateLimit)
    }

    /// Hands the values of the numeric fields, in order, to `set`.
    #[inline]
    pub fn numbers(&self, decision: &Decision, mut set: impl FnMut(f64)) {
        let Some(bound) = decision.bound() else { return };
        for form in &self.forms {
            match form {
                Form::XRateLimit => {
                    set(bound.limit);
                    set(bound.remaining);
                    set(match self.reset {
                        Reset::Unix => seconds(bound.reset_at),
                        Reset::Delta => seconds(bound.reset_at - decision.now),
                    });
                }
                Form::Draft6 => {
                    set(bound.limit);
                    set(bound.remaining);
                    set(seconds(bound.next_at - decision.now));
                }
                Form::Draft7 | Form::Draft8 => {}
            }
        }
    }

    /// The values of the text fields, in order. `policies` and `names` are those that the decision is about.
    pub fn texts(&self, decision: &Decision, policies: &[Policy], names: &[String]) -> Vec<String> {
        let Some(bound) = decision.bound() else { return Vec::new() };
        let mut texts = Vec::new();
        for form in &self.forms {
            match form {
                Form::XRateLimit => {}
                Form::Draft6 => texts.push(quota_policy(policies)),
                Form::Draft7 => {
                    texts.push(draft_7(bound, decision.now));
                    texts.push(quota_policy(policies));
                }
                Form::Draft8 => {
                    texts.push(draft_8(decision, names));
                    texts.push(draft_8_policy(policies, names));
                }
            }
        }
        texts
    }
}

fn read_forms(field: &Field<'_>) -> Result<Vec<Form>, ConfigError> {
    let forms = match field.value() {
        Value::Bool(false) => return Ok(Vec::new()),
        Value::List(_) => {
            let items = field.items(code::INVALID_HEADERS, "must be a list")?;
            items
                .iter()
                .map(|item| item.word(code::INVALID_HEADERS, &FORMS))
                .collect::<Result<Vec<_>, _>>()?
        }
        Value::Text(_) => vec![field.word(code::INVALID_HEADERS, &FORMS)?],
        _ => {
            let allowed =
                "must be 'x-ratelimit', 'draft-6', 'draft-7', 'draft-8', a list of them, or false";
            return Err(field.wrong_type(code::INVALID_HEADERS, allowed));
        }
    };
    let drafts = forms.iter().filter(|form| **form != Form::XRateLimit).count();
    if drafts > 1 {
        return Err(field.fault(
            code::CONTRADICTION,
            "names more than one draft, and all drafts use the same header fields",
        ));
    }
    if forms.len() - drafts > 1 {
        return Err(field.fault(code::CONTRADICTION, "names 'x-ratelimit' twice"));
    }
    Ok(forms)
}

/// The value of `Retry-After`: whole seconds, at least 1; absent unless the request was refused and may pass later.
pub fn retry_after(decision: &Decision) -> Option<f64> {
    let wait = decision.retry_after()?;
    (wait > 0.0).then(|| seconds(wait).max(1.0))
}

/// Microseconds as whole seconds, rounded up.
#[inline]
fn seconds(micros: f64) -> f64 {
    ceil((micros / SECOND).max(0.0)).min(LARGEST_INTEGER)
}

/// In how many whole seconds the policy's quota comes again; absent below one second, which the drafts cannot say.
/// A bucket's quota is its burst, which takes burst / limit windows to come again.
fn quota_seconds(policy: &Policy) -> Option<f64> {
    let time = if policy.limit > 0.0 {
        policy.window * (policy.capacity / policy.limit)
    } else {
        policy.window
    };
    (time >= SECOND).then(|| seconds(time))
}

/// `100;w=60, 1000;w=3600`: `RateLimit-Policy` of drafts 6 and 7.
fn quota_policy(policies: &[Policy]) -> String {
    let item = |policy: &Policy| match quota_seconds(policy) {
        Some(window) => format!("{};w={window}", policy.capacity),
        None => policy.capacity.to_string(),
    };
    policies.iter().map(item).collect::<Vec<_>>().join(", ")
}

/// `limit=100, remaining=50, reset=5`.
fn draft_7(bound: &PolicyState, now: f64) -> String {
    format!(
        "limit={}, remaining={}, reset={}",
        bound.limit,
        bound.remaining,
        seconds(bound.next_at - now)
    )
}

/// `"burst";r=9;t=1, "daily";r=900;t=30`.
fn draft_8(decision: &Decision, names: &[String]) -> String {
    let item = |(state, name): (&PolicyState, &String)| {
        format!("\"{name}\";r={};t={}", state.remaining, seconds(state.next_at - decision.now))
    };
    decision.policies.iter().zip(names).map(item).collect::<Vec<_>>().join(", ")
}

/// `"burst";q=10;w=1, "daily";q=1000;w=86400`. Names hold only what a quoted string may hold as it is.
fn draft_8_policy(policies: &[Policy], names: &[String]) -> String {
    let item = |(policy, name): (&Policy, &String)| match quota_seconds(policy) {
        Some(window) => format!("\"{name}\";q={};w={window}", policy.capacity),
        None => format!("\"{name}\";q={}", policy.capacity),
    };
    policies.iter().zip(names).map(item).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use crate::policy::Algorithm;
    use smallvec::smallvec;

    fn state(remaining: f64, reset_at: f64, next_at: f64) -> PolicyState {
        PolicyState {
            admits: true,
            limit: 10.0,
            remaining,
            reset_at,
            next_at,
            retry_after: 0.0,
            delay: 0.0,
        }
    }

    fn headers(forms: &[&str], reset: &str) -> Headers {
        let list = forms.iter().map(|form| Value::Text((*form).into()).into()).collect();
        let options: Document = Value::Map(vec![
            ("headers".into(), Value::List(list).into()),
            ("reset".into(), Value::Text(reset.into()).into()),
        ])
        .into();
        Headers::read(&Field::root(&options, "")).unwrap()
    }

    fn numbers(headers: &Headers, decision: &Decision) -> Vec<f64> {
        let mut numbers = Vec::new();
        headers.numbers(decision, |number| numbers.push(number));
        numbers
    }

    const NOW: f64 = 1_700_000_000_250_000.0;

    #[test]
    fn x_ratelimit_rounds_the_reset_up() {
        let decision = Decision::of(smallvec![state(7.0, NOW + 1.0, NOW + 1.0)], NOW);
        assert_eq!(
            numbers(&headers(&["x-ratelimit"], "unix"), &decision),
            [10.0, 7.0, 1_700_000_001.0]
        );
        assert_eq!(numbers(&headers(&["x-ratelimit"], "delta"), &decision), [10.0, 7.0, 1.0]);
    }

    #[test]
    fn each_draft_has_its_own_syntax() {
        let policies = [
            Policy::new(Algorithm::FixedWindow, 10.0, 60.0 * SECOND),
            Policy::new(Algorithm::TokenBucket, 2.0, SECOND).with_burst(10.0),
            Policy::new(Algorithm::FixedWindow, 10.0, 250_000.0),
        ];
        let names = ["a", "b c", "d"].map(String::from);
        let states = smallvec![
            state(7.0, NOW + 5.0 * SECOND, NOW + 4.1 * SECOND),
            state(3.0, NOW + SECOND, NOW + SECOND),
            state(9.0, NOW + 1.0, NOW + 1.0)
        ];
        let decision = Decision::of(states, NOW);
        assert_eq!(numbers(&headers(&["draft-6"], "unix"), &decision), [10.0, 3.0, 1.0]);
        let texts = |form| headers(&[form], "unix").texts(&decision, &policies, &names);
        assert_eq!(texts("draft-6"), ["10;w=60, 10;w=5, 10"]);
        assert_eq!(texts("draft-7"), ["limit=10, remaining=3, reset=1", "10;w=60, 10;w=5, 10"]);
        assert_eq!(
            texts("draft-8"),
            [
                r#""a";r=7;t=5, "b c";r=3;t=1, "d";r=9;t=1"#,
                r#""a";q=10;w=60, "b c";q=10;w=5, "d";q=10"#
            ]
        );
    }

    #[test]
    fn a_decision_that_counted_nothing_shows_no_number() {
        let decision = Decision::uncounted(crate::decision::Outcome::Allowlisted, NOW);
        let all = headers(&["x-ratelimit", "draft-8"], "unix");
        assert!(numbers(&all, &decision).is_empty() && all.texts(&decision, &[], &[]).is_empty());
        assert_eq!(retry_after(&decision), None);
    }

    #[test]
    fn retry_after_is_at_least_one_second_and_absent_when_waiting_is_in_vain() {
        let denied = |retry_after| {
            Decision::of(
                smallvec![PolicyState { admits: false, retry_after, ..state(0.0, NOW, NOW) }],
                NOW,
            )
        };
        assert_eq!(retry_after(&denied(1.0)), Some(1.0));
        assert_eq!(retry_after(&denied(1_000_001.0)), Some(2.0));
        assert_eq!(retry_after(&denied(f64::INFINITY)), None);
    }

    #[test]
    fn two_drafts_at_once_are_refused() {
        let list = ["draft-7", "draft-8"].map(|form| Value::Text(form.into()).into()).to_vec();
        let options: Document =
            Value::Map(vec![("headers".into(), Value::List(list).into())]).into();
        assert_eq!(
            Headers::read(&Field::root(&options, "")).unwrap_err().code,
            code::CONTRADICTION
        );
    }
}
