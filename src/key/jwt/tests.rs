mod options;
mod unverified;
mod verified;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value as Json, json};

use super::*;
use crate::document::{Document, Value};

/// A moment that no system clock shows, so that a comparison with one is found out.
const NOW: f64 = 1e9;

/// A pair of keys for tests, with the algorithms they are for.
struct Pair {
    private: &'static str,
    public: &'static str,
    algorithms: &'static [Algorithm],
}

const RSA: Pair = Pair {
    private: include_str!("test_keys/rsa_private.pem"),
    public: include_str!("test_keys/rsa_public.pem"),
    algorithms: &[
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
    ],
};
const EC256: Pair = Pair {
    private: include_str!("test_keys/ec256_private.pem"),
    public: include_str!("test_keys/ec256_public.pem"),
    algorithms: &[Algorithm::ES256],
};
const EC384: Pair = Pair {
    private: include_str!("test_keys/ec384_private.pem"),
    public: include_str!("test_keys/ec384_public.pem"),
    algorithms: &[Algorithm::ES384],
};
const ED: Pair = Pair {
    private: include_str!("test_keys/ed_private.pem"),
    public: include_str!("test_keys/ed_public.pem"),
    algorithms: &[Algorithm::EdDSA],
};
const PAIRS: [Pair; 4] = [RSA, EC256, EC384, ED];
const SECRET: &str = "a secret of the tests";

impl Pair {
    fn signing_key(&self) -> EncodingKey {
        let pem = self.private.as_bytes();
        match self.algorithms[0].family() {
            jsonwebtoken::AlgorithmFamily::Rsa => EncodingKey::from_rsa_pem(pem),
            jsonwebtoken::AlgorithmFamily::Ec => EncodingKey::from_ec_pem(pem),
            _ => EncodingKey::from_ed_pem(pem),
        }
        .unwrap()
    }

    /// The public key as a JWK with a `kid`.
    fn jwk(&self, id: &str) -> Json {
        let jwk =
            jsonwebtoken::jwk::Jwk::from_encoding_key(&self.signing_key(), self.algorithms[0]);
        let mut jwk = serde_json::to_value(jwk.unwrap()).unwrap();
        jwk["kid"] = id.into();
        jwk
    }

    fn sign(&self, algorithm: Algorithm, id: Option<&str>, claims: &Json) -> String {
        sign(&self.signing_key(), algorithm, id, claims)
    }
}

fn sign(key: &EncodingKey, algorithm: Algorithm, id: Option<&str>, claims: &Json) -> String {
    let header = Header { kid: id.map(str::to_owned), ..Header::new(algorithm) };
    encode(&header, claims, key).unwrap()
}

fn sign_by_secret(claims: &Json) -> String {
    sign(&EncodingKey::from_secret(SECRET.as_bytes()).unwrap(), Algorithm::HS256, None, claims)
}

/// Claims of `alice` that are valid at [`NOW`].
fn claims() -> Json {
    json!({ "sub": "alice", "exp": NOW + 600.0 })
}

fn claims_with(name: &str, value: Json) -> Json {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn alice() -> Verdict {
    Verdict::Subject(Digest::of("alice"))
}

fn part(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// A token that nobody signed, from the text of its parts.
fn token(header: &str, claims: impl AsRef<[u8]>) -> String {
    format!("{}.{}.{}", part(header), part(claims), part("no signature"))
}

fn ask(verifier: &Verifier, token: &str) -> Verdict {
    ask_at(verifier, token, NOW)
}

fn ask_at(verifier: &Verifier, token: &str, now: f64) -> Verdict {
    verifier.subject(&format!("Bearer {token}"), now, false)
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

fn list(texts: &[&str]) -> Value {
    Value::List(texts.iter().map(|item| text(*item).into()).collect())
}

fn from_json(json: &Json) -> Document {
    let value = match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::Number(number.as_f64().unwrap()),
        Json::String(value) => text(value.clone()),
        Json::Array(items) => Value::List(items.iter().map(from_json).collect()),
        Json::Object(members) => Value::Map(
            members.iter().map(|(name, member)| (name.clone(), from_json(member))).collect(),
        ),
    };
    value.into()
}

fn read(options: &[(&str, Value)]) -> Result<Verifier, ConfigError> {
    let member = |(name, value): &(&str, Value)| ((*name).to_owned(), value.clone().into());
    let document: Document = Value::Map(options.iter().map(member).collect()).into();
    Verifier::read(&Field::root(&document, "jwt"))
}

fn by_secret() -> Verifier {
    read(&[("secret", text(SECRET))]).unwrap()
}

fn by_public_key(pair: &Pair) -> Verifier {
    read(&[("publicKey", text(pair.public))]).unwrap()
}

fn by_set(keys: &[Json]) -> Result<Verifier, ConfigError> {
    read(&[("jwks", from_json(&json!({ "keys": keys })).value)])
}

fn by_function() -> Verifier {
    read(&[("jwks", Value::Other("a function"))]).unwrap()
}
