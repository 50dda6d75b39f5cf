//! The parts of a token that can be read without a key.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::LONGEST_SUBJECT;
use crate::key::Digest;

/// JOSE's alphabet (RFC 7515 §2). It has no padding there, but some issuers add it.
const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The token of an `authorization` header with the scheme `Bearer`, in any case (RFC 9110 §11.1).
pub(super) fn of_header(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once([' ', '\t'])?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// The subject that a token claims. Refused are tokens that say of themselves that nobody signed them.
pub(super) fn unverified_subject(token: &str) -> Option<Digest> {
    let mut parts = token.split('.');
    let (header, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || signature.is_empty() {
        return None;
    }
    let header = object(header)?;
    let algorithm = header.get("alg")?.as_str()?.trim();
    if algorithm.is_empty() || algorithm.eq_ignore_ascii_case("none") {
        return None;
    }
    subject(&object(claims)?)
}

/// `sub`, if it is text that can stand for somebody (RFC 7519 §4.1.2 lets it be nothing but text).
pub(super) fn subject(claims: &Value) -> Option<Digest> {
    let subject = claims.get("sub")?.as_str()?;
    (subject.len() <= LONGEST_SUBJECT && !subject.trim().is_empty()).then(|| Digest::of(subject))
}

/// Invalid UTF-8 and absurd nesting are refused by `serde_json`, which goes 128 levels deep.
fn object(part: &str) -> Option<Value> {
    let json = BASE64URL.decode(part).ok()?;
    serde_json::from_slice::<Value>(&json).ok().filter(Value::is_object)
}
