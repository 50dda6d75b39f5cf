//! Request → key: what the framework knows of a request enters, an [`Identity`] leaves, or what is missing for one.
//!
//! Nothing here fails: a request without a usable credential counts for its address, one without an address for
//! [`Key::no_address`]. Nothing here reads a request either: the caller hands over the address only when it is asked
//! for, since reading it is the dearest part in JavaScript.

use super::jwt::{Verdict, Verifier};
use super::{Address, BLANKS, Bytes, Digest, Key, encode_utf16};
use crate::document::{Field, Value};
use crate::error::{ConfigError, code};

const DEFAULT_HEADER: &str = "x-api-key";
const DEFAULT_SUBNET: u8 = 56;
const WHOLE_ADDRESS: u8 = 128;

/// What a key is made of, and so what the caller has to read of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The client's address.
    Address,
    /// The API key in [`Extractor::key_header`].
    Header,
    /// The subject of the token in the `authorization` header.
    Authorization,
    /// The caller's own function.
    Custom,
    /// Address and API key.
    Composite,
}

/// The client's address, as far as the caller has looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given<'a> {
    /// Not looked yet.
    Unread,
    /// There is none: a Unix socket, a connection that is gone.
    Missing,
    /// Text that should be one.
    Text(&'a str),
}

/// What a key is made from.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The client's address.
    pub address: Given<'a>,
    /// Value of the header that [`Source`] names, or the text of the caller's function.
    pub credential: Option<&'a str>,
    /// Whether the verification keys are as new as they get, so that an unknown one is a bad token.
    pub keys_final: bool,
}

/// The answer to a [`Request`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extraction {
    /// Whom it counts for.
    Found(Identity),
    /// Ask again with the address.
    NeedsAddress,
    /// What was given is no address: ask again with the socket's own, and then with [`Given::Missing`].
    InvalidAddress,
    /// The token names a key that is not known: fetch the set, hand it to [`Extractor::set_jwks`], ask again with
    /// `keys_final`.
    NeedsKeys,
}

/// Whom a request counts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Whose counter.
    pub key: Key,
    /// Whether the client chose it freely (an API key, an unverified subject), so that new ones cost nothing.
    pub made_up: bool,
    /// The address, if it was given.
    pub address: Option<Address>,
    /// Whether the caller looked for an address and there was none.
    pub no_address: bool,
    /// Whether the caller's function gave nothing, and the address stands in.
    pub blank: bool,
}

/// The `keyExtractor` of a limiter with the options that belong to it.
#[derive(Debug)]
pub struct Extractor {
    source: Source,
    key_header: String,
    subnet: u8,
    verifier: Verifier,
}

impl Default for Extractor {
    fn default() -> Self {
        Self {
            source: Source::Address,
            key_header: DEFAULT_HEADER.into(),
            subnet: DEFAULT_SUBNET,
            verifier: Verifier::default(),
        }
    }
}

impl Extractor {
    /// The options that are read here.
    pub const FIELDS: [&str; 4] = ["keyExtractor", "keyHeader", "ipv6Subnet", "jwt"];

    /// Reads [`Self::FIELDS`] of a map of options.
    pub fn read(options: &Field<'_>) -> Result<Self, ConfigError> {
        let mut extractor = Self::default();
        if let Some(field) = options.get("keyExtractor") {
            extractor.source = read_source(&field)?;
        }
        if let Some(field) = options.get("keyHeader") {
            extractor.key_header = read_header(&field)?;
        }
        if let Some(field) = options.get("ipv6Subnet") {
            extractor.subnet = read_subnet(&field)?;
        }
        if let Some(field) = options.get("jwt") {
            if extractor.source != Source::Authorization {
                return Err(field.fault(code::CONTRADICTION, "needs keyExtractor: 'jwt-sub'"));
            }
            extractor.verifier = Verifier::read(&field)?;
        }
        Ok(extractor)
    }

    /// What a key is made of.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The header of the API key, in lower case as Node's are.
    pub fn key_header(&self) -> &str {
        &self.key_header
    }

    /// Whether no key can be made without the address.
    pub fn always_reads_address(&self) -> bool {
        matches!(self.source, Source::Address | Source::Composite)
    }

    /// Whether tokens are verified before their subject is believed.
    pub fn verifies(&self) -> bool {
        self.verifier.verifies()
    }

    /// Whether the keys of tokens are fetched by the caller and handed to [`Self::set_jwks`].
    pub fn fetches_jwks(&self) -> bool {
        self.verifier.fetches_jwks()
    }

    /// Replaces the set of verification keys; [`Verifier::set_jwks`] says what is taken.
    pub fn set_jwks(&self, json: &str) -> Result<(), ConfigError> {
        self.verifier.set_jwks(json)
    }

    /// The key that an address counts under, whatever the request's own key is.
    pub fn address_key(&self, address: &Address) -> Key {
        Key::of_address(Some(address), self.subnet)
    }

    /// Makes the key of a request. `now_seconds` is Unix time, for the dates in a token.
    pub fn extract(&self, request: &Request<'_>, now_seconds: f64) -> Extraction {
        let address = match self.read_address(request.address) {
            Ok(address) => address,
            Err(answer) => return answer,
        };
        match self.source {
            Source::Address => self.by_address(address, false),
            Source::Header => match api_key(request.credential) {
                Some(digest) => address.found(Key::of_api_key(digest), true),
                None => self.by_address(address, false),
            },
            Source::Composite => match api_key(request.credential) {
                Some(digest) => {
                    let key = Key::composite(address.address.as_ref(), self.subnet, digest);
                    address.found(key, true)
                }
                None => self.by_address(address, false),
            },
            Source::Authorization => {
                let header = request.credential.unwrap_or_default();
                match self.verifier.subject(header, now_seconds, request.keys_final) {
                    Verdict::Subject(digest) => {
                        address.found(Key::of_subject(digest), !self.verifies())
                    }
                    Verdict::NeedsKeys => Extraction::NeedsKeys,
                    Verdict::Rejected => self.by_address(address, false),
                }
            }
            Source::Custom => {
                let text = request.credential.filter(|text| !text.trim().is_empty());
                self.by_text(text.map(|text| Bytes::from_slice(text.as_bytes())), address)
            }
        }
    }

    /// The same for [`Source::Custom`] with the JavaScript string that the caller's function gave, if it gave one.
    pub fn extract_custom(&self, text: Option<&[u16]>, address: Given<'_>) -> Extraction {
        let text = text.filter(|units| !is_blank(units));
        match self.read_address(address) {
            Ok(address) => self.by_text(text.map(encode_utf16), address),
            Err(answer) => answer,
        }
    }

    /// The key text for what the caller's function gave; none if that is blank. Unlike [`Key::text`] it reads back as the same
    /// key whatever its length, and with lone surrogates.
    pub fn custom_text(text: &[u16]) -> Option<Vec<u16>> {
        (!is_blank(text)).then(|| Key::custom_text(text))
    }

    fn read_address(&self, given: Given<'_>) -> Result<Known, Extraction> {
        match given {
            Given::Unread if self.always_reads_address() => Err(Extraction::NeedsAddress),
            Given::Unread => Ok(Known { address: None, read: false }),
            Given::Missing => Ok(Known { address: None, read: true }),
            Given::Text(text) => match Address::parse(text) {
                Some(address) => Ok(Known { address: Some(address), read: true }),
                None => Err(Extraction::InvalidAddress),
            },
        }
    }

    fn by_text(&self, text: Option<Bytes>, address: Known) -> Extraction {
        match text {
            Some(bytes) => address.found(Key::custom(bytes), false),
            None => self.by_address(address, true),
        }
    }

    fn by_address(&self, known: Known, blank: bool) -> Extraction {
        if !known.read {
            return Extraction::NeedsAddress;
        }
        Extraction::Found(Identity {
            blank,
            ..known.identity(Key::of_address(known.address.as_ref(), self.subnet), false)
        })
    }
}

/// An address that is valid, absent, or not looked for.
#[derive(Clone, Copy)]
struct Known {
    address: Option<Address>,
    read: bool,
}

impl Known {
    fn found(self, key: Key, made_up: bool) -> Extraction {
        Extraction::Found(self.identity(key, made_up))
    }

    fn identity(self, key: Key, made_up: bool) -> Identity {
        let no_address = self.read && self.address.is_none();
        Identity { key, made_up, address: self.address, no_address, blank: false }
    }
}

fn is_blank(units: &[u16]) -> bool {
    units.iter().all(|unit| char::from_u32((*unit).into()).is_some_and(char::is_whitespace))
}

/// A blank key is none.
fn api_key(credential: Option<&str>) -> Option<Digest> {
    let key = credential?.trim_matches(BLANKS);
    (!key.trim().is_empty()).then(|| Digest::of(key))
}

fn read_source(field: &Field<'_>) -> Result<Source, ConfigError> {
    let allowed = "must be one of 'ip', 'api-key-header', 'jwt-sub', 'composite', or a function";
    match field.value() {
        Value::Other("a function") => Ok(Source::Custom),
        Value::Text(text) => match text.as_str() {
            "ip" => Ok(Source::Address),
            "api-key-header" => Ok(Source::Header),
            "jwt-sub" => Ok(Source::Authorization),
            "composite" => Ok(Source::Composite),
            _ => Err(field.out_of_range(code::INVALID_KEY_EXTRACTOR, allowed)),
        },
        _ => Err(field.wrong_type(code::INVALID_KEY_EXTRACTOR, allowed)),
    }
}

fn read_header(field: &Field<'_>) -> Result<String, ConfigError> {
    let allowed = "must be the name of a header, such as 'x-api-key'";
    let name = field.text(code::INVALID_KEY_HEADER, allowed)?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(field.out_of_range(code::INVALID_KEY_HEADER, allowed));
    }
    Ok(name.to_ascii_lowercase())
}

fn read_subnet(field: &Field<'_>) -> Result<u8, ConfigError> {
    let allowed = "must be a whole number from 32 to 64, or false";
    match *field.value() {
        Value::Bool(false) => Ok(WHOLE_ADDRESS),
        Value::Number(number) => (32..=64)
            .find(|bits| f64::from(*bits) == number)
            .ok_or_else(|| field.out_of_range(code::INVALID_IPV6_SUBNET, allowed)),
        _ => Err(field.wrong_type(code::INVALID_IPV6_SUBNET, allowed)),
    }
}

#[cfg(test)]
mod tests;
