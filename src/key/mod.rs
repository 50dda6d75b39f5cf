//! Who a request counts for: text enters, a [`Key`] leaves.
//!
//! Every kind of key begins with its own prefix and no kind can imitate another, so a client cannot write itself into
//! somebody else's counter. What may be a secret (API keys, subjects) is hashed before it becomes part of a key.
//!
//! | key text | what it is |
//! |---|---|
//! | `ip:203.0.113.7`, `ip:2001:db8:1:200::/56` | an address, IPv6 as its network |
//! | `ip:none` | all requests that have no address |
//! | `key:` + 32 hex digits | half a SHA-256 of an API key |
//! | `sub:` + 32 hex digits | the same of a token's subject |
//! | `ip+key:` address `\|` 32 hex digits | address and API key |
//! | anything else | what the caller's own function gave, behind `custom:` if it begins like one of the above |

pub mod address;
mod extractor;
pub mod jwt;

use std::fmt;

use sha2::{Digest as _, Sha256};
use smallvec::SmallVec;

pub use self::address::Address;
pub use self::extractor::{Extraction, Extractor, Given, Identity, Request, Source};
use crate::error::{ConfigError, code};

/// The longest key that is kept as it is. A longer one becomes its digest, so that no client decides how much memory
/// its key takes.
pub const LONGEST: usize = 512;

/// First byte of a key that is a digest. Neither UTF-8 nor an encoded surrogate contains it, so no text can be taken
/// for such a key.
const HASHED: u8 = 0xff;

/// What the other kinds begin with. Text of a caller's function that begins so is put behind `custom:`, which is why
/// `custom:` itself is one of them.
const RESERVED: [&[u8]; 5] = [b"ip:", b"key:", b"sub:", b"ip+key:", CUSTOM];
const CUSTOM: &[u8] = b"custom:";

/// Blanks around a header's value are not part of it (RFC 9110 §5.5).
const BLANKS: [char; 2] = [' ', '\t'];

/// Long enough for every key but a composite one with a long IPv6 address.
type Bytes = SmallVec<[u8; 64]>;

/// Whose counter it is, in canonical bytes: equal bytes are one client, everywhere.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Bytes);

impl Key {
    /// A key text as it is, such as what `keyOf` gave.
    pub fn from_text(text: &str) -> Result<Self, ConfigError> {
        Self::not_empty(Bytes::from_slice(text.as_bytes()))
    }

    /// The same of a JavaScript string. Surrogates that stand alone are encoded as they are (WTF-8): replaced by
    /// U+FFFD, `"\ud800"` and `"\ud801"` would be one client.
    pub fn from_utf16(units: &[u16]) -> Result<Self, ConfigError> {
        Self::not_empty(encode_utf16(units))
    }

    /// The key of every request that has no address: one bucket that can be named, never `undefined`.
    pub fn no_address() -> Self {
        Self(Bytes::from_slice(b"ip:none"))
    }

    /// The bytes that stores count under.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key, borrowed.
    #[inline]
    pub fn by_ref(&self) -> KeyRef<'_> {
        KeyRef(&self.0)
    }

    /// The key as text, for people. It reads back as the same key, except where the key was cut to its digest
    /// (`sha256:…`) or holds a lone surrogate.
    pub fn text(&self) -> String {
        match self.0.split_first() {
            Some((&HASHED, digest)) => {
                let mut text = Bytes::from_slice(b"sha256:");
                push_hex(&mut text, digest);
                String::from_utf8_lossy(&text).into_owned()
            }
            _ => String::from_utf8_lossy(&self.0).into_owned(),
        }
    }

    /// The keys that a name in a list stands for: the key text itself, the API key and the subject, which are hashed
    /// in the keys of requests.
    pub(crate) fn every_reading(name: &str) -> [Self; 3] {
        [
            Self::bounded(Bytes::from_slice(name.as_bytes())),
            Self::of_api_key(Digest::of(name.trim_matches(BLANKS))),
            Self::of_subject(Digest::of(name)),
        ]
    }

    /// The API key in a key that holds one, as the key it would be alone; so a list that names an API key finds it in
    /// a composite key too.
    pub(crate) fn api_key_of_composite(&self) -> Option<Self> {
        if !self.0.starts_with(b"ip+key:") {
            return None;
        }
        let bar = self.0.iter().rposition(|byte| *byte == b'|')?;
        let mut bytes = Bytes::from_slice(b"key:");
        bytes.extend_from_slice(&self.0[bar + 1..]);
        Some(Self(bytes))
    }

    pub(crate) fn of_api_key(digest: Digest) -> Self {
        Self(digest.after(b"key:"))
    }

    pub(crate) fn of_subject(digest: Digest) -> Self {
        Self(digest.after(b"sub:"))
    }

    fn of_address(address: Option<&Address>, subnet: u8) -> Self {
        let Some(address) = address else { return Self::no_address() };
        let mut text = Text(Bytes::from_slice(b"ip:"));
        text.push_address(*address, subnet);
        Self(text.0)
    }

    fn composite(address: Option<&Address>, subnet: u8, digest: Digest) -> Self {
        let mut text = Text(Bytes::from_slice(b"ip+key:"));
        match address {
            Some(address) => text.push_address(*address, subnet),
            None => text.0.extend_from_slice(b"none"),
        }
        // No address contains a bar, and the digest has one length: the parts cannot run into each other.
        text.0.push(b'|');
        push_hex(&mut text.0, &digest.0);
        Self(text.0)
    }

    /// What a caller's own function gave. The prefix comes before the cut to a digest, or a long text could meet
    /// another one's prefixed form.
    fn custom(mut bytes: Bytes) -> Self {
        if RESERVED.iter().any(|prefix| bytes.starts_with(prefix)) {
            bytes.insert_from_slice(0, CUSTOM);
        }
        Self::bounded(bytes)
    }

    /// The text that [`Key::from_utf16`] reads as [`Key::custom`] of `units`.
    fn custom_text(units: &[u16]) -> Vec<u16> {
        let starts = |prefix: &&[u8]| {
            units.len() >= prefix.len()
                && units.iter().zip(*prefix).all(|(unit, byte)| *unit == u16::from(*byte))
        };
        let reserved = RESERVED.iter().any(starts);
        let prefix = if reserved { CUSTOM } else { b"" };
        prefix.iter().map(|byte| u16::from(*byte)).chain(units.iter().copied()).collect()
    }

    fn not_empty(bytes: Bytes) -> Result<Self, ConfigError> {
        if bytes.is_empty() {
            return Err(ConfigError::of_range(code::INVALID_KEY, "key", "must not be empty"));
        }
        Ok(Self::bounded(bytes))
    }

    fn bounded(bytes: Bytes) -> Self {
        if bytes.len() <= LONGEST {
            return Self(bytes);
        }
        let mut hashed = Bytes::new();
        hashed.push(HASHED);
        hashed.extend_from_slice(&Sha256::digest(&bytes));
        Self(hashed)
    }
}

/// A [`Key`] that lies somewhere else: most keys are counted without ever being moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRef<'a>(&'a [u8]);

impl<'a> KeyRef<'a> {
    /// A key text that is ASCII and short, which is its own canonical form; none if it is not.
    #[inline]
    pub fn from_ascii(text: &'a [u8]) -> Option<Self> {
        (!text.is_empty() && text.len() <= LONGEST && text.is_ascii()).then_some(Self(text))
    }

    /// The bytes that stores count under.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The key of its own.
    pub fn to_key(self) -> Key {
        Key(Bytes::from_slice(self.0))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Through `Debug` of text, so that a key cannot put a line break or an escape sequence into a log.
        f.debug_tuple("Key").field(&self.text()).finish()
    }
}

/// The first half of a SHA-256: of what must not be readable in a store, and is too long for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest([u8; 16]);

impl Digest {
    pub(crate) fn of(secret: &str) -> Self {
        let whole: [u8; 32] = Sha256::digest(secret).into();
        let mut half = [0; 16];
        half.copy_from_slice(&whole[..16]);
        Self(half)
    }

    fn after(self, prefix: &[u8]) -> Bytes {
        let mut bytes = Bytes::from_slice(prefix);
        push_hex(&mut bytes, &self.0);
        bytes
    }
}

fn push_hex(bytes: &mut Bytes, digest: &[u8]) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    for byte in digest {
        bytes.push(DIGITS[usize::from(byte >> 4)]);
        bytes.push(DIGITS[usize::from(byte & 15)]);
    }
}

fn encode_utf16(units: &[u16]) -> Bytes {
    // Nearly every key is ASCII. Two passes without a branch in them are what the compiler makes vectors of.
    if units.iter().fold(0, |all, unit| all | unit) < 0x80 {
        let mut bytes = Bytes::from_elem(0, units.len());
        for (byte, unit) in bytes.iter_mut().zip(units) {
            *byte = unit.to_le_bytes()[0];
        }
        return bytes;
    }
    let mut bytes = Bytes::with_capacity(units.len());
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(char) => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let [high, low] = lone.unpaired_surrogate().to_be_bytes();
                bytes.extend_from_slice(&[
                    0xe0 | high >> 4,
                    0x80 | (high & 0x0f) << 2 | low >> 6,
                    0x80 | low & 0x3f,
                ]);
            }
        }
    }
    bytes
}

/// Lets addresses be formatted straight into a key.
struct Text(Bytes);

impl Text {
    fn push_address(&mut self, address: Address, subnet: u8) {
        // Writing into memory does not fail; the sink below never says otherwise.
        let _ = address.write_network(subnet, self);
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
