//! One limit: how much, in what time, by which algorithm. A [`Policy`] that exists is valid.

use crate::clock::{DAY, MILLISECOND, SECOND};
use crate::document::{Field, Value};
use crate::error::{ConfigError, code};

/// The largest limit and burst.
pub const MOST: f64 = 1e9;
/// The largest limit of a sliding window log, which remembers each admitted request.
pub const MOST_LOGGED: f64 = 1e6;
/// The largest cost of one request: what a double counts without losing a unit.
pub const MOST_COST: f64 = 9_007_199_254_740_991.0;
/// The shortest window, in microseconds.
pub const SHORTEST_WINDOW: f64 = MILLISECOND;
/// The longest window, in microseconds.
pub const LONGEST_WINDOW: f64 = 366.0 * DAY;
/// The most policies of one request.
pub const MOST_POLICIES: usize = 8;
/// The fields of a document that describe one policy.
pub const POLICY_FIELDS: [&str; 6] = ["limit", "window", "algorithm", "burst", "align", "maxDelay"];

const DEFAULT_MAX_DELAY: f64 = 5.0 * SECOND;

/// How a policy counts; `docs/algorithms.md` says which to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// One count a window.
    FixedWindow,
    /// Two counts, weighted by overlap.
    #[default]
    SlidingWindowCounter,
    /// Every admitted request, exact.
    SlidingWindowLog,
    /// Credit that fills up steadily.
    TokenBucket,
    /// A queue that drains steadily.
    LeakyBucket,
}

impl Algorithm {
    /// All of them with the names that options use.
    pub const ALL: [(&str, Algorithm); 5] = [
        ("fixed_window", Self::FixedWindow),
        ("sliding_window_counter", Self::SlidingWindowCounter),
        ("sliding_window_log", Self::SlidingWindowLog),
        ("token_bucket", Self::TokenBucket),
        ("leaky_bucket", Self::LeakyBucket),
    ];

    fn is_bucket(self) -> bool {
        matches!(self, Self::TokenBucket | Self::LeakyBucket)
    }
}

/// The numbers of one policy. All times are microseconds, all amounts whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// How it counts.
    pub algorithm: Algorithm,
    /// Units in a window.
    pub limit: f64,
    /// Length of the window.
    pub window: f64,
    /// The most units at once: the burst of a bucket, the limit of the others, 0 when the limit is 0.
    pub capacity: f64,
    /// Whether a burst was given; without one the capacity follows a limit that changes.
    pub has_burst: bool,
    /// Fixed window: whether windows stand on the UTC boundary instead of starting with the first request.
    pub aligned: bool,
    /// Leaky bucket: the longest wait in the queue.
    pub max_delay: f64,
}

impl Policy {
    /// A policy of `limit` units in `window` microseconds with everything else as it is by default.
    pub fn new(algorithm: Algorithm, limit: f64, window: f64) -> Self {
        Self {
            algorithm,
            limit,
            window,
            capacity: limit,
            has_burst: false,
            aligned: false,
            max_delay: DEFAULT_MAX_DELAY,
        }
    }

    /// The same policy with room for `burst` units at once.
    #[must_use]
    pub fn with_burst(self, burst: f64) -> Self {
        Self { capacity: if self.limit == 0.0 { 0.0 } else { burst }, has_burst: true, ..self }
    }

    /// The same policy with another limit, as for a limit that is a function of the request.
    #[must_use]
    pub fn with_limit(self, limit: f64) -> Self {
        let capacity = if self.has_burst && limit > 0.0 { self.capacity } else { limit };
        Self { limit, capacity, ..self }
    }

    /// Reads the policy fields of a map; `limit_later` lets the limit be absent (it is a function of the request).
    pub fn read(field: &Field<'_>, limit_later: bool) -> Result<Self, ConfigError> {
        let algorithm = match field.get("algorithm") {
            Some(algorithm) => algorithm.word(code::INVALID_ALGORITHM, &Algorithm::ALL)?,
            None => Algorithm::default(),
        };
        let most = most_of(algorithm);
        let limit = match field.get("limit") {
            Some(limit) => limit.whole_number(code::INVALID_LIMIT, 0.0, most)?,
            None if limit_later => 0.0,
            None => return Err(field.fault(code::MISSING_OPTION, "needs a limit")),
        };
        let Some(window) = field.get("window") else {
            return Err(field.fault(code::MISSING_OPTION, "needs a window"));
        };
        let window = duration(&window, code::INVALID_WINDOW, SHORTEST_WINDOW)?;
        let mut policy = Self::new(algorithm, limit, window);
        if let Some(burst) = field.get("burst") {
            if !algorithm.is_bucket() {
                return Err(
                    burst.fault(code::CONTRADICTION, "is only for token_bucket and leaky_bucket")
                );
            }
            let burst = burst.whole_number(code::INVALID_BURST, 0.0, MOST)?;
            policy = Self { has_burst: true, capacity: burst, ..policy };
            if !limit_later {
                policy = policy.with_burst(burst);
            }
        }
        if let Some(align) = field.get("align") {
            if algorithm != Algorithm::FixedWindow {
                return Err(align.fault(code::CONTRADICTION, "is only for fixed_window"));
            }
            align.word(code::INVALID_ALIGN, &[("utc", ())])?;
            policy.aligned = true;
        }
        if let Some(max_delay) = field.get("maxDelay") {
            if algorithm != Algorithm::LeakyBucket {
                return Err(max_delay.fault(code::CONTRADICTION, "is only for leaky_bucket"));
            }
            policy.max_delay = duration(&max_delay, code::INVALID_MAX_DELAY, 0.0)?;
        }
        Ok(policy)
    }

    /// The name that a policy has by default, such as `10-per-1s`.
    pub fn default_name(&self) -> String {
        format!("{}-per-{}", self.limit, duration_text(self.window))
    }
}

/// The largest limit of an algorithm.
pub fn most_of(algorithm: Algorithm) -> f64 {
    if algorithm == Algorithm::SlidingWindowLog { MOST_LOGGED } else { MOST }
}

/// Reads a duration, `'250ms'`, `'10s'`, `'1m'`, `'1h'`, `'1d'` or a number of milliseconds, as microseconds.
pub fn duration(field: &Field<'_>, code: &'static str, least: f64) -> Result<f64, ConfigError> {
    let allowed = format!(
        "must be a whole number of milliseconds from {} to {}, or text such as '250ms', '10s', '1m', '1h', '1d'",
        least / MILLISECOND,
        LONGEST_WINDOW / MILLISECOND,
    );
    let micros = match field.value() {
        Value::Number(number) if number.fract() == 0.0 => number * MILLISECOND,
        Value::Number(_) => return Err(field.out_of_range(code, &allowed)),
        Value::Text(text) => {
            parse_duration(text).ok_or_else(|| field.out_of_range(code, &allowed))?
        }
        _ => return Err(field.wrong_type(code, &allowed)),
    };
    if (least..=LONGEST_WINDOW).contains(&micros) {
        Ok(micros)
    } else {
        Err(field.out_of_range(code, &allowed))
    }
}

/// Units with their length in microseconds, longest first.
const UNITS: [(&str, f64); 5] =
    [("d", DAY), ("h", 3600.0 * SECOND), ("m", 60.0 * SECOND), ("s", SECOND), ("ms", MILLISECOND)];

fn parse_duration(text: &str) -> Option<f64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
    (1..=12)
        .contains(&digits)
        .then(|| number.parse::<f64>().ok())
        .flatten()
        .map(|number| number * length)
}

/// A duration in its largest whole unit.
fn duration_text(micros: f64) -> String {
    let (unit, length) =
        UNITS.iter().find(|(_, length)| micros % length == 0.0).unwrap_or(&("ms", MILLISECOND));
    format!("{}{unit}", micros / length)
}
