//! Whose token it is: the value of an `authorization` header enters, the digest of its subject leaves.
//!
//! Without the `jwt` option the subject is read and believed, which is enough to count honest clients apart and no more
//! (the caller warns of it). With the option nothing in a token is believed before its signature is verified, by keys
//! that the configuration chose: `jku`, `x5u` and `jwk` in a token are ignored, and an algorithm is only ever used with
//! a key of its own kind. A token with anything wrong is no error but [`Verdict::Rejected`]: the request counts for its
//! address. This file fetches nothing; a set of keys is handed in.

mod keys;
mod options;
mod token;

use std::fmt;

use arc_swap::ArcSwap;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use sha2::{Digest as _, Sha256};

use self::keys::{KeySet, Proof};
use super::Digest;
use crate::document::Field;
use crate::error::{ConfigError, code};

/// The longest token that is looked at.
pub const LONGEST_TOKEN: usize = 8 * 1024;
/// The longest subject that is believed.
pub const LONGEST_SUBJECT: usize = 256;
/// Seconds that clocks may differ by.
pub const LEEWAY: f64 = 60.0;

/// The most keys that are tried on a token which does not say its key: each costs a signature check, and a check takes
/// from 40 µs (Ed25519) to 1 ms (P-384).
const MOST_TRIES: usize = 4;

/// What became of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Good, or unverified and readable.
    Subject(Digest),
    /// No token, a bad one, or none that is valid now.
    Rejected,
    /// Its key is not in the set, and the set may be old.
    NeedsKeys,
}

/// Reads subjects, verified or not.
#[derive(Default)]
pub struct Verifier(Option<Box<Verification>>);

/// How tokens are verified.
struct Verification {
    /// Swapped as a whole with the tokens it has verified, so that none outlives its key.
    keys: ArcSwap<KeySet>,
    origin: Origin,
    algorithms: Vec<Algorithm>,
    issuer: Option<Vec<String>>,
    audience: Option<Vec<String>>,
}

/// Where the keys come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// One key, whatever `kid` a token names.
    Option,
    /// A set that was given.
    Set,
    /// A set that the caller fetches.
    Fetched,
}

impl Verifier {
    /// Reads the `jwt` option.
    pub fn read(field: &Field<'_>) -> Result<Self, ConfigError> {
        Ok(Self(Some(Box::new(Verification::read(field)?))))
    }

    /// Whether signatures are checked.
    pub fn verifies(&self) -> bool {
        self.0.is_some()
    }

    /// Whether the set of keys is fetched by the caller.
    pub fn fetches_jwks(&self) -> bool {
        self.0.as_ref().is_some_and(|verification| verification.origin == Origin::Fetched)
    }

    /// Replaces the keys by a JWK set (RFC 7517). Keys that cannot verify tokens here are skipped; a set without any
    /// that can is taken for a fault of its server, and the old keys stay.
    pub fn set_jwks(&self, json: &str) -> Result<(), ConfigError> {
        let Some(verification) = self.0.as_ref().filter(|it| it.origin != Origin::Option) else {
            return Err(ConfigError::of_type(code::CONTRADICTION, "jwt", "takes no jwks"));
        };
        let set = serde_json::from_str(json)
            .map_err(|_| "is no JSON")
            .and_then(|set| keys::from_set(&set, verification))
            .map_err(|problem| ConfigError::of_type(code::INVALID_JWT, "jwt.jwks", problem))?;
        verification.keys.store(set.into());
        Ok(())
    }

    /// Whose token the header carries at `now_seconds`.
    pub(crate) fn subject(&self, header: &str, now_seconds: f64, keys_final: bool) -> Verdict {
        let token = match token::of_header(header) {
            Some(token) if token.len() <= LONGEST_TOKEN => token,
            _ => return Verdict::Rejected,
        };
        match &self.0 {
            Some(verification) => verification.subject(token, now_seconds, keys_final),
            None => match token::unverified_subject(token) {
                Some(digest) => Verdict::Subject(digest),
                None => Verdict::Rejected,
            },
        }
    }
}

/// Says what it does and not by which keys.
impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.0.as_ref().map(|verification| verification.origin);
        f.debug_tuple("Verifier").field(&origin).finish()
    }
}

impl Verification {
    fn subject(&self, token: &str, now: f64, keys_final: bool) -> Verdict {
        let keys = self.keys.load();
        // A client sends its token with each request, and a fingerprint costs a hundredth of a signature.
        let fingerprint: [u8; 32] = Sha256::digest(token).into();
        if let Some(proof) = keys.verified(&fingerprint) {
            return proof.verdict(now);
        }
        let Ok(header) = decode_header(token) else { return Verdict::Rejected };
        if !self.algorithms.contains(&header.alg) {
            return Verdict::Rejected;
        }
        let id = if self.origin == Origin::Option { None } else { header.kid.as_deref() };
        if !keys.knows(id) {
            let may_be_old = self.origin == Origin::Fetched && !keys_final;
            return if may_be_old { Verdict::NeedsKeys } else { Verdict::Rejected };
        }
        let claims = keys
            .candidates(id, header.alg)
            .take(MOST_TRIES)
            .find_map(|(key, validation)| verified_claims(token, key, validation));
        let Some(proof) = claims.as_ref().and_then(Proof::of) else { return Verdict::Rejected };
        let verdict = proof.verdict(now);
        if verdict != Verdict::Rejected {
            keys.remember(fingerprint, proof);
        }
        verdict
    }

    /// What a token signed by a key for these algorithms has to fulfil, its dates excepted: `jsonwebtoken` would compare
    /// them to the system's clock, and the clock here is the caller's.
    fn validation(&self, algorithms: Vec<Algorithm>) -> Validation {
        let mut validation = Validation {
            algorithms,
            validate_exp: false,
            validate_nbf: false,
            validate_aud: self.audience.is_some(),
            ..Validation::default()
        };
        validation.required_spec_claims.clear();
        // Given an issuer, a token without one would pass if it were not also required.
        if let Some(issuer) = &self.issuer {
            validation.set_issuer(issuer);
            validation.required_spec_claims.insert("iss".into());
        }
        if let Some(audience) = &self.audience {
            validation.set_audience(audience);
            validation.required_spec_claims.insert("aud".into());
        }
        validation
    }
}

fn verified_claims(
    token: &str,
    key: &DecodingKey,
    validation: &Validation,
) -> Option<serde_json::Value> {
    decode(token, key, validation).ok().map(|data| data.claims)
}

#[cfg(test)]
mod tests;
