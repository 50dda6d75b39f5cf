//! Verification keys: a secret, a PEM text or a JWK set enters, keys leave that are known to work, each bound to the
//! algorithms of its own kind.
//!
//! Whether a key works is settled here and not at the first token: `jsonwebtoken` looks at most keys only when it
//! verifies, and answers a key of the wrong length with a panic.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Validation};
use parking_lot::Mutex;
use serde_json::Value;

use super::{LEEWAY, Verdict, Verification, token};
use crate::key::Digest;

/// The most keys of a set; issuers publish two or three.
const MOST_KEYS: usize = 100;
/// The most verified tokens that are remembered.
const MOST_VERIFIED: usize = 1024;
/// Bits of an RSA modulus: RFC 7518 §3.3 asks for 2,048, and a larger one than 8,192 costs too much to check.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// Keys, and the tokens that they have verified.
pub(super) struct KeySet {
    keys: Vec<VerificationKey>,
    verified: Mutex<HashMap<[u8; 32], Proof>>,
}

/// A key with what its tokens have to fulfil.
pub(super) struct VerificationKey {
    id: Option<String>,
    key: DecodingKey,
    validation: Validation,
}

/// What is kept of a verified token: enough to judge it again at another time.
#[derive(Clone, Copy)]
pub(super) struct Proof {
    subject: Digest,
    /// Unix seconds, leeway included.
    valid_from: f64,
    valid_until: f64,
}

impl Proof {
    /// Reads verified claims; a token without an end, or with a date that is no number, is refused.
    pub(super) fn of(claims: &Value) -> Option<Self> {
        let valid_from = match claims.get("nbf") {
            Some(date) => date.as_f64()? - LEEWAY,
            None => f64::NEG_INFINITY,
        };
        let valid_until = claims.get("exp")?.as_f64()? + LEEWAY;
        Some(Self { subject: token::subject(claims)?, valid_from, valid_until })
    }

    pub(super) fn verdict(self, now: f64) -> Verdict {
        if self.valid_from <= now && now < self.valid_until {
            Verdict::Subject(self.subject)
        } else {
            Verdict::Rejected
        }
    }
}

impl KeySet {
    fn new(keys: Vec<VerificationKey>) -> Self {
        Self { keys, verified: Mutex::default() }
    }

    pub(super) fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// The set of one key.
    pub(super) fn of_one(key: DecodingKey, validation: Validation) -> Self {
        Self::new(vec![VerificationKey { id: None, key, validation }])
    }

    /// Whether a token with this `kid` can be judged by the set.
    pub(super) fn knows(&self, id: Option<&str>) -> bool {
        match id {
            Some(_) => self.keys.iter().any(|key| key.id.as_deref() == id),
            None => !self.keys.is_empty(),
        }
    }

    /// The keys for a `kid` and an algorithm; without a `kid`, all for the algorithm.
    pub(super) fn candidates(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = (&DecodingKey, &Validation)> {
        self.keys
            .iter()
            .filter(move |key| id.is_none() || key.id.as_deref() == id)
            .filter(move |key| key.validation.algorithms.contains(&algorithm))
            .map(|key| (&key.key, &key.validation))
    }

    pub(super) fn verified(&self, fingerprint: &[u8; 32]) -> Option<Proof> {
        self.verified.lock().get(fingerprint).copied()
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.verified.lock().len()
    }

    /// Keeps a proof. A full table is emptied: that costs each client one more signature, and needs no order of use.
    pub(super) fn remember(&self, fingerprint: [u8; 32], proof: Proof) {
        let mut verified = self.verified.lock();
        if verified.len() >= MOST_VERIFIED {
            verified.clear();
        }
        verified.insert(fingerprint, proof);
    }
}

/// Reads a JWK set. Keys that are not for verifying, or not understood, are skipped.
pub(super) fn from_set(set: &Value, verification: &Verification) -> Result<KeySet, &'static str> {
    let members = set.get("keys").and_then(Value::as_array);
    let members = members.ok_or("must be an object with a list of keys")?;
    let read = |jwk: &Value| {
        let jwk = serde_json::from_value::<Jwk>(jwk.clone()).ok()?;
        let (key, mut algorithms) = usable(&jwk)?;
        algorithms.retain(|algorithm| verification.algorithms.contains(algorithm));
        if algorithms.is_empty() {
            return None;
        }
        Some(VerificationKey {
            id: jwk.common.key_id,
            key,
            validation: verification.validation(algorithms),
        })
    };
    let keys: Vec<_> = members.iter().filter_map(read).take(MOST_KEYS).collect();
    if keys.is_empty() {
        return Err("has no public key that can be used here");
    }
    Ok(KeySet::new(keys))
}

/// Reads a public key or a certificate in PEM form, with the algorithms that it can verify.
pub(super) fn from_pem(pem: &str) -> Option<(DecodingKey, Vec<Algorithm>)> {
    let pem = pem.as_bytes();
    let key = DecodingKey::from_rsa_pem(pem)
        .or_else(|_| DecodingKey::from_ec_pem(pem))
        .or_else(|_| DecodingKey::from_ed_pem(pem))
        .ok()?;
    usable(&Jwk::from_decoding_key(&key, None).ok()?)
}

/// The key of a JWK and its algorithms, if it works.
fn usable(jwk: &Jwk) -> Option<(DecodingKey, Vec<Algorithm>)> {
    let common = &jwk.common;
    if common.public_key_use.as_ref().is_some_and(|usage| *usage != PublicKeyUse::Signature) {
        return None;
    }
    let verifies = |operations: &Vec<_>| operations.contains(&KeyOperations::Verify);
    if !common.key_operations.as_ref().is_none_or(verifies) {
        return None;
    }
    let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
    let algorithms = match &jwk.algorithm {
        AlgorithmParameters::RSA(rsa) => {
            is_rsa(&decoded(&rsa.n)?, &decoded(&rsa.e)?).then(|| AlgorithmFamily::Rsa.algorithms())
        }
        AlgorithmParameters::EllipticCurve(ec) => {
            let lengths = (decoded(&ec.x)?.len(), decoded(&ec.y)?.len());
            match (&ec.curve, lengths) {
                (EllipticCurve::P256, (32, 32)) => Some(&[Algorithm::ES256][..]),
                (EllipticCurve::P384, (48, 48)) => Some(&[Algorithm::ES384][..]),
                _ => None,
            }
        }
        AlgorithmParameters::OctetKeyPair(pair) => (pair.curve == EllipticCurve::Ed25519
            && decoded(&pair.x)?.len() == 32)
            .then_some(&[Algorithm::EdDSA][..]),
        // A secret in a set that anybody can read is none.
        _ => None,
    }?;
    let key = DecodingKey::from_jwk(jwk).ok()?;
    // Builds the verifier, which is where a point that is not on its curve is found out.
    jsonwebtoken::crypto::verify("", &[], &key, *algorithms.first()?).ok()?;
    let mut algorithms = algorithms.to_vec();
    if let Some(only) = common.key_algorithm {
        let only = Algorithm::try_from(only).ok()?;
        algorithms.retain(|algorithm| *algorithm == only);
    }
    Some((key, algorithms))
}

fn is_rsa(modulus: &[u8], exponent: &[u8]) -> bool {
    let modulus = without_zeros(modulus);
    let exponent = without_zeros(exponent);
    let bits = |bytes: &[u8]| {
        bytes.len() * 8 - bytes.first().map_or(0, |byte| byte.leading_zeros() as usize)
    };
    let is_odd = |bytes: &[u8]| bytes.last().is_some_and(|byte| byte & 1 == 1);
    RSA_BITS.contains(&bits(modulus))
        && (2..=33).contains(&bits(exponent))
        && is_odd(modulus)
        && is_odd(exponent)
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}
