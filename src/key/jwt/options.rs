//! The `jwt` option. Its values may be secrets: no error here repeats one.

use std::str::FromStr;

use arc_swap::ArcSwap;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde_json::{Map, Number};

use super::keys::{self, KeySet};
use super::{Origin, Verification};
use crate::document::{Document, Field, Value};
use crate::error::{ConfigError, code};

const FIELDS: [&str; 6] = ["secret", "publicKey", "jwks", "algorithms", "issuer", "audience"];
const KEY_FIELDS: [&str; 3] = ["secret", "publicKey", "jwks"];

impl Verification {
    pub(super) fn read(field: &Field<'_>) -> Result<Self, ConfigError> {
        field.expect_map(code::INVALID_JWT, &FIELDS)?;
        let mut given = KEY_FIELDS.into_iter().filter_map(|name| Some((name, field.get(name)?)));
        let (name, key_field) = match (given.next(), given.next()) {
            (Some(one), None) => one,
            (None, _) => {
                let problem = "needs one of secret, publicKey, jwks";
                return Err(field.fault(code::MISSING_OPTION, problem));
            }
            (Some(_), Some((_, second))) => {
                let problem =
                    "cannot be given as well: secret, publicKey and jwks exclude each other";
                return Err(second.fault(code::CONTRADICTION, problem));
            }
        };
        let (origin, key, possible) = match name {
            "secret" => {
                let key = read_secret(&key_field)?;
                (Origin::Option, Some(key), AlgorithmFamily::Hmac.algorithms().to_vec())
            }
            "publicKey" => {
                let (key, algorithms) = read_public_key(&key_field)?;
                (Origin::Option, Some(key), algorithms)
            }
            _ => {
                let is_function = *key_field.value() == Value::Other("a function");
                let origin = if is_function { Origin::Fetched } else { Origin::Set };
                let families = [AlgorithmFamily::Rsa, AlgorithmFamily::Ec, AlgorithmFamily::Ed];
                let algorithms = families.iter().flat_map(AlgorithmFamily::algorithms);
                (origin, None, algorithms.copied().collect())
            }
        };
        let mut verification = Self {
            keys: ArcSwap::from_pointee(KeySet::empty()),
            origin,
            algorithms: match field.get("algorithms") {
                Some(algorithms) => read_algorithms(&algorithms, &possible)?,
                None => possible,
            },
            issuer: read_names(field, "issuer")?,
            audience: read_names(field, "audience")?,
        };
        let set = match key {
            Some(key) => {
                let validation = verification.validation(verification.algorithms.clone());
                KeySet::of_one(key, validation)
            }
            None if origin == Origin::Set => read_set(&key_field, &verification)?,
            None => KeySet::empty(),
        };
        verification.keys = ArcSwap::from_pointee(set);
        Ok(verification)
    }
}

fn read_secret(field: &Field<'_>) -> Result<DecodingKey, ConfigError> {
    let Value::Text(secret) = field.value() else {
        return Err(field.fault(code::INVALID_JWT, "must be text"));
    };
    // A public key taken for a secret lets anybody sign: the classic confusion of algorithms.
    if secret.contains("-----BEGIN") {
        let problem = "is a key in PEM form; give a public key as publicKey";
        return Err(field.fault(code::INVALID_JWT, problem));
    }
    match DecodingKey::from_secret(secret.as_bytes()) {
        Ok(key) if !secret.trim().is_empty() => Ok(key),
        _ => Err(field.fault(code::INVALID_JWT, "must not be empty")),
    }
}

fn read_public_key(field: &Field<'_>) -> Result<(DecodingKey, Vec<Algorithm>), ConfigError> {
    let Value::Text(pem) = field.value() else {
        return Err(field.fault(code::INVALID_JWT, "must be text: a public key in PEM form"));
    };
    if pem.contains("PRIVATE KEY") {
        let problem = "is a private key; give the public one that belongs to it";
        return Err(field.fault(code::INVALID_JWT, problem));
    }
    let problem = "must be a public key in PEM form: RSA of 2048 to 8192 bits, EC on P-256 or P-384, or Ed25519";
    keys::from_pem(pem).ok_or_else(|| field.fault(code::INVALID_JWT, problem))
}

fn read_set(field: &Field<'_>, verification: &Verification) -> Result<KeySet, ConfigError> {
    if !matches!(field.value(), Value::Map(_)) {
        let problem = "must be an object with a list of keys, or a function that fetches one";
        return Err(field.fault(code::INVALID_JWT, problem));
    }
    keys::from_set(&to_json(field.document()), verification)
        .map_err(|problem| field.fault(code::INVALID_JWT, problem))
}

fn read_algorithms(
    field: &Field<'_>,
    possible: &[Algorithm],
) -> Result<Vec<Algorithm>, ConfigError> {
    let names: Vec<_> = possible.iter().map(|algorithm| format!("'{algorithm:?}'")).collect();
    let allowed = format!("must be one of {} with this kind of key", names.join(", "));
    let items = field.items(code::INVALID_JWT, "must be a list of algorithms")?;
    if items.is_empty() {
        return Err(field.fault(code::INVALID_JWT, "must not be empty"));
    }
    let read = |item: &Field<'_>| {
        let name = item.text(code::INVALID_JWT, &allowed)?;
        let algorithm = Algorithm::from_str(name).ok().filter(|it| possible.contains(it));
        algorithm.ok_or_else(|| item.out_of_range(code::INVALID_JWT, &allowed))
    };
    items.iter().map(read).collect()
}

/// One name or a list of them.
fn read_names(parent: &Field<'_>, name: &str) -> Result<Option<Vec<String>>, ConfigError> {
    let Some(field) = parent.get(name) else { return Ok(None) };
    let problem = "must be text or a list of texts";
    let items = match field.value() {
        Value::Text(_) => vec![field.clone()],
        _ => field.items(code::INVALID_JWT, problem)?,
    };
    let read = |item: &Field<'_>| match item.text(code::INVALID_JWT, problem)? {
        text if text.trim().is_empty() => Err(item.fault(code::INVALID_JWT, "must not be empty")),
        text => Ok(text.to_owned()),
    };
    let names = items.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if names.is_empty() {
        return Err(field.fault(code::INVALID_JWT, "must not be empty"));
    }
    Ok(Some(names))
}

fn to_json(document: &Document) -> serde_json::Value {
    match &document.value {
        Value::Null | Value::Other(_) => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => Number::from_f64(*number).into(),
        Value::Text(text) => text.clone().into(),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Map(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), to_json(member)))
            .collect::<Map<_, _>>()
            .into(),
    }
}
