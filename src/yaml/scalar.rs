//! What a plain YAML scalar stands for, by the core schema of YAML 1.2.
//!
//! Quoted scalars never come here: they are text.

use std::borrow::Cow;

use crate::document::Value;

/// The value of a plain scalar.
pub(super) fn resolve(text: Cow<'_, str>) -> Value {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        other => number(other).map_or_else(|| Value::Text(text.into_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<f64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return whole(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return whole(digits, 8);
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(f64::NAN);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        let infinite = f64::INFINITY;
        return Some(if text.starts_with('-') { -infinite } else { infinite });
    }
    // Rust reads `inf`, `nan` and `infinity` as numbers, YAML does not; all that both read begins like this.
    let begins =
        unsigned.strip_prefix('.').unwrap_or(unsigned).starts_with(|c: char| c.is_ascii_digit());
    begins.then(|| text.parse().ok()).flatten()
}

/// Digits of a base; as a double, as many as there are.
fn whole(digits: &str, base: u32) -> Option<f64> {
    let add = |sum: f64, digit: char| {
        digit.to_digit(base).map(|digit| sum * f64::from(base) + f64::from(digit))
    };
    (!digits.is_empty()).then(|| digits.chars().try_fold(0.0, add)).flatten()
}
