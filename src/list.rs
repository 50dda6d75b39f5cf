//! `allow` and `deny`: a list of addresses, CIDR blocks and keys enters, whether a request is on it leaves.
//!
//! What looks like an address or a block and is none is refused where it was written: taken for a key it would match
//! nobody, and the list would be a lock that does not lock. A lookup costs one set for each length of prefix in the
//! list, however many entries there are.

use std::fmt;
use std::hash::Hash;
use std::net::IpAddr;

use hashbrown::HashSet;

use crate::document::Field;
use crate::error::ConfigError;
use crate::key::address::{mask_v4, mask_v6};
use crate::key::{Address, Key};

/// The addresses, blocks and keys of `allow` or `deny`.
#[derive(Default)]
pub struct List {
    v4: Blocks<u32>,
    v6: Blocks<u128>,
    keys: HashSet<Key>,
}

/// Says how much is on the list: a name may be an API key.
impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks = self.v4.iter().map(|(_, networks)| networks.len()).sum::<usize>()
            + self.v6.iter().map(|(_, networks)| networks.len()).sum::<usize>();
        f.debug_struct("List").field("blocks", &blocks).field("keys", &self.keys.len()).finish()
    }
}

/// The networks of a list, one set for each length of prefix.
type Blocks<T> = Vec<(u8, HashSet<T>)>;

impl List {
    /// Reads the list; `code` is the one of its option.
    pub fn read(field: &Field<'_>, code: &'static str) -> Result<Self, ConfigError> {
        let mut list = Self::default();
        for item in field.items(code, "must be a list of addresses, CIDR blocks and keys")? {
            let text = item.text(code, "must be text: an address, a CIDR block or a key")?;
            list.add(text).map_err(|problem| item.out_of_range(code, problem))?;
        }
        Ok(list)
    }

    /// Whether nothing is on the list.
    pub fn is_empty(&self) -> bool {
        !self.has_addresses() && self.keys.is_empty()
    }

    /// Whether the list can only be asked with the address.
    pub fn has_addresses(&self) -> bool {
        !self.v4.is_empty() || !self.v6.is_empty()
    }

    /// Whether a client is on the list by its address or by its key.
    pub fn matches(&self, address: Option<&Address>, key: &Key) -> bool {
        address.is_some_and(|address| self.has_address(*address))
            || !self.keys.is_empty() && self.has_key(key)
    }

    fn has_address(&self, address: Address) -> bool {
        match address.ip() {
            IpAddr::V4(ip) => contains(&self.v4, |bits| ip.to_bits() & mask_v4(bits)),
            IpAddr::V6(ip) => contains(&self.v6, |bits| ip.to_bits() & mask_v6(bits)),
        }
    }

    fn has_key(&self, key: &Key) -> bool {
        self.keys.contains(key)
            || key.api_key_of_composite().is_some_and(|key| self.keys.contains(&key))
    }

    fn add(&mut self, text: &str) -> Result<(), &'static str> {
        // Lists come out of environment variables with blanks after the commas; a key may have them, an address not.
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err("must be an address, a CIDR block or a key");
        }
        if let Some((ip, bits)) = trimmed.split_once('/')
            && let Some(address) = Address::parse_bare(ip)
            && bits.bytes().all(|byte| byte.is_ascii_hexdigit() || b".:/%+".contains(&byte))
        {
            let is_mapped = ip.contains(':') && address.ip().is_ipv4();
            return self.add_block(address, bits, is_mapped);
        }
        if let Some(address) = Address::parse_bare(trimmed) {
            self.add_network(address, 128);
            return Ok(());
        }
        if Address::parse(trimmed).is_some() {
            return Err("must be an address alone, without port, brackets or quotes");
        }
        if looks_like_address(trimmed) {
            return Err("looks like an address or a CIDR block and must then be one");
        }
        self.keys.extend(Key::every_reading(text));
        Ok(())
    }

    fn add_block(
        &mut self,
        address: Address,
        bits: &str,
        is_mapped: bool,
    ) -> Result<(), &'static str> {
        let (least, most, problem) = match address.ip() {
            // 96 of a mapped block's bits say only that it is IPv4.
            IpAddr::V4(_) if is_mapped => {
                (96, 128, "must have a prefix from 96 to 128, as a block of mapped IPv4 addresses")
            }
            IpAddr::V4(_) => (0, 32, "must have a prefix from 0 to 32"),
            IpAddr::V6(_) => (0, 128, "must have a prefix from 0 to 128"),
        };
        // `parse` alone would take `+8`.
        let is_number = bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits: u8 = is_number.then(|| bits.parse().ok()).flatten().ok_or(problem)?;
        if !(least..=most).contains(&bits) {
            return Err(problem);
        }
        self.add_network(address, bits - least);
        Ok(())
    }

    /// Bits of the host are dropped: `10.0.0.1/8` is `10.0.0.0/8`.
    fn add_network(&mut self, address: Address, bits: u8) {
        match address.ip() {
            IpAddr::V4(ip) => {
                let bits = bits.min(32);
                insert(&mut self.v4, bits, ip.to_bits() & mask_v4(bits));
            }
            IpAddr::V6(ip) => insert(&mut self.v6, bits, ip.to_bits() & mask_v6(bits)),
        }
    }
}

fn contains<T: Eq + Hash>(blocks: &Blocks<T>, network: impl Fn(u8) -> T) -> bool {
    blocks.iter().any(|(bits, networks)| networks.contains(&network(*bits)))
}

fn insert<T: Eq + Hash>(blocks: &mut Blocks<T>, bits: u8, network: T) {
    if let Some((_, networks)) = blocks.iter_mut().find(|(length, _)| *length == bits) {
        networks.insert(network);
    } else {
        blocks.push((bits, HashSet::from([network])));
    }
}

/// Whether somebody who wrote this meant an address: `1.2.3`, `10.0.0.*`, `10/8`, `10.0.0.1, 10.0.0.2`, `2001:db8:1`,
/// `::g`. Words (`dead.beef`), pairs of numbers (`12:34`) and hardware addresses are keys.
fn looks_like_address(text: &str) -> bool {
    let has_only = |allowed: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit() || allowed.contains(char::from(byte)))
    };
    let is_dotted = text.contains(['.', '/']) && has_only(".:/%*-,; ");
    let is_grouped = text.matches(':').count() > 1 && has_only("abcdefABCDEF.:/%*-,; ");
    let has_zone = text.split_once('%').is_some_and(|(ip, _)| Address::parse_bare(ip).is_some());
    is_dotted || is_grouped && !is_hardware_address(text) || has_zone || text.starts_with("::")
}

/// `00:1b:44:11:3a:b7`, which no IPv6 address can be: it has eight groups, or `::`.
fn is_hardware_address(text: &str) -> bool {
    text.split(':').count() == 6
        && text
            .split(':')
            .all(|group| group.len() == 2 && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::document::{Document, Value};
    use crate::error::{Kind, code};
    use crate::key::{Extraction, Extractor, Given, Request};

    fn read(entries: &[&str]) -> Result<List, ConfigError> {
        let entries = entries.iter().map(|entry| Value::Text((*entry).into()).into()).collect();
        let document: Document = Value::List(entries).into();
        List::read(&Field::root(&document, "deny"), code::INVALID_DENY)
    }

    /// Whether the list holds an address, with a key that it does not hold.
    fn holds(entries: &[&str], address: &str) -> bool {
        let key = Key::from_text("nobody on any list").unwrap();
        read(entries).unwrap().matches(Address::parse(address).as_ref(), &key)
    }

    fn key_by(extractor: &str, address: &str, credential: &str) -> Key {
        let source = Value::Text(extractor.into()).into();
        let options: Document = Value::Map(vec![("keyExtractor".into(), source)]).into();
        let extractor = Extractor::read(&Field::root(&options, "")).unwrap();
        let credential = Some(credential);
        let request = Request { address: Given::Text(address), credential, keys_final: true };
        match extractor.extract(&request, 0.0) {
            Extraction::Found(identity) => identity.key,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn holds_an_address_in_every_spelling() {
        for address in ["203.0.113.7", "::ffff:203.0.113.7", "::FFFF:cb00:7107", "203.0.113.7:80"] {
            assert!(holds(&["203.0.113.7"], address));
            assert!(holds(&["::ffff:cb00:7107"], address));
        }
        assert!(!holds(&["203.0.113.7"], "203.0.113.8"));
        assert!(holds(&["2001:DB8:0::1"], "2001:db8::1"));
        assert!(holds(&["fe80::1%eth0"], "fe80::1%eth1"));
        assert!(holds(&[" 203.0.113.7"], "203.0.113.7"));
    }

    #[test]
    fn holds_the_addresses_of_a_block_and_no_other() {
        assert!(holds(&["10.0.0.0/8"], "10.255.0.1") && !holds(&["10.0.0.0/8"], "11.0.0.1"));
        assert!(holds(&["10.0.0.1/8"], "10.9.9.9"), "bits of the host are dropped");
        assert!(holds(&["192.0.2.1/32"], "192.0.2.1") && !holds(&["192.0.2.1/32"], "192.0.2.2"));
        assert!(holds(&["2001:db8::/32"], "2001:db8:ffff::1"));
        assert!(!holds(&["2001:db8::/32"], "2001:db9::1"));
        assert!(holds(&["2001:db8::1/128"], "2001:db8::1"));
        assert!(holds(&["10.0.0.0/8", "172.16.0.0/12", "192.0.2.0/24"], "192.0.2.9"));
    }

    #[test]
    fn a_block_of_one_family_holds_nothing_of_the_other() {
        assert!(holds(&["0.0.0.0/0"], "203.0.113.7") && !holds(&["0.0.0.0/0"], "2001:db8::1"));
        assert!(holds(&["::/0"], "2001:db8::1") && !holds(&["::/0"], "::ffff:203.0.113.7"));
    }

    #[test]
    fn a_block_of_mapped_addresses_is_its_ipv4_block() {
        assert!(holds(&["::ffff:10.0.0.0/104"], "10.1.2.3"));
        assert!(!holds(&["::ffff:10.0.0.0/104"], "11.1.2.3"));
        assert!(holds(&["::ffff:a00:1/128"], "10.0.0.1"));
        assert!(holds(&["::ffff:0:0/96"], "10.0.0.1"));
        let error = read(&["::ffff:10.0.0.0/8"]).unwrap_err();
        assert!(error.problem.contains("from 96 to 128"), "{error}");
    }

    #[test]
    fn what_looks_like_an_address_and_is_none_is_refused_by_name() {
        for entry in [
            "",
            " ",
            "010.0.0.1",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "10.0.0.0/255.0.0.0",
            "10.0.0.0/8a",
            "10.0.0.0/999",
            "10/8",
            "10.0.0.*",
            "10.0.0.1-10.0.0.9",
            "10.0.0.1, 10.0.0.2",
            "10.0.0.1%eth0",
            "1.2.3",
            "1.2.3.4.5",
            "256.0.0.1",
            "1.2.3.4:80",
            "[2001:db8::1]",
            "[2001:db8::1]:80",
            "2001:db8::/129",
            "2001:db8::/-1",
            "2001:db8:1",
            "2001:db8:1:2:3:4:5",
            "2001:db8:::1",
            "2001:db8::1::2",
            "2001:db8::*",
            "::g",
            "::ffff:1.2.3",
        ] {
            let error = read(&["10.0.0.0/8", "user:42", entry]).unwrap_err();
            assert_eq!((error.code, error.kind), (code::INVALID_DENY, Kind::Range), "{entry}");
            assert_eq!(error.field, "deny[2]", "{entry}");
            assert!(error.problem.contains(&format!("{entry:?}")), "{error}");
        }
    }

    #[test]
    fn what_can_only_be_a_word_is_a_key() {
        for entry in [
            "1234",
            "deadbeef",
            "dead.beef",
            "12:34",
            "user:42",
            "cafe/7",
            "a1b2-c3d4",
            "10.0.0.1/login",
            "203.0.113.7-login",
            "me@example.com",
            "00:1b:44:11:3a:b7",
            "tenant::user",
            "ip:203.0.113.7",
            " a",
        ] {
            let list = read(&[entry]).unwrap();
            assert!(!list.has_addresses() && !list.is_empty(), "{entry}");
            assert!(list.matches(None, &Key::from_text(entry).unwrap()), "{entry}");
            assert!(!list.matches(None, &Key::from_text("a").unwrap()), "{entry}");
        }
    }

    #[test]
    fn names_api_keys_and_subjects_though_their_keys_are_hashed() {
        let list = read(&["sk_live_1", "alice"]).unwrap();
        assert!(list.matches(None, &key_by("api-key-header", "1.2.3.4", "sk_live_1")));
        assert!(!list.matches(None, &key_by("api-key-header", "1.2.3.4", "sk_live_2")));
        assert!(list.matches(None, &key_by("composite", "1.2.3.4", "sk_live_1")));
        assert!(!list.matches(None, &key_by("composite", "1.2.3.4", "sk_live_2")));
        // {"alg":"HS256"} . {"sub":"alice"} . (not a signature)
        let token = "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.AAAA";
        assert!(list.matches(None, &key_by("jwt-sub", "1.2.3.4", token)));
        let text = key_by("api-key-header", "1.2.3.4", "sk_live_2").text();
        assert!(
            read(&[&text]).unwrap().matches(None, &key_by("api-key-header", "::", "sk_live_2"))
        );
        assert!(!format!("{list:?}").contains("sk_live"));
    }

    #[test]
    fn an_address_that_a_client_writes_as_its_api_key_is_on_no_list_of_addresses() {
        let list = read(&["203.0.113.7", "10.0.0.0/8"]).unwrap();
        for claimed in ["203.0.113.7", "10.0.0.1", "ip:203.0.113.7", "10.0.0.0/8"] {
            let key = key_by("api-key-header", "198.51.100.1", claimed);
            assert!(!list.matches(Address::parse("198.51.100.1").as_ref(), &key));
        }
    }

    #[test]
    fn says_what_it_needs_to_be_asked() {
        let list = List::default();
        assert!(list.is_empty() && !list.has_addresses());
        assert!(!list.matches(Address::parse("1.2.3.4").as_ref(), &Key::no_address()));
        assert!(read(&[]).unwrap().is_empty());
        assert!(read(&["::/0"]).unwrap().has_addresses());
        assert!(!read(&["user:1"]).unwrap().has_addresses());
        assert!(!holds(&["1.2.3.4"], "no address"));
    }

    #[test]
    fn refuses_what_is_no_list_of_texts() {
        let refused = |value: Value| {
            let document: Document = value.into();
            let error = List::read(&Field::root(&document, "allow"), code::INVALID_ALLOW);
            error.unwrap_err()
        };
        assert_eq!(refused(Value::Text("10.0.0.0/8".into())).kind, Kind::Type);
        let error = refused(Value::List(vec![Value::Number(10.0).into()]));
        assert_eq!((error.code, error.field.as_str()), (code::INVALID_ALLOW, "allow[0]"));
    }

    #[test]
    fn ten_thousand_entries_make_one_set_for_each_length_of_prefix() {
        let entries: Vec<String> =
            (0..10_000).map(|n| format!("10.{}.{}.0/{}", n >> 8, n & 255, 23 + n % 2)).collect();
        let list = read(&entries.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert_eq!(list.v4.len(), 2);
        let key = Key::no_address();
        assert!(list.matches(Address::parse("10.39.14.9").as_ref(), &key));
        assert!(!list.matches(Address::parse("10.200.0.1").as_ref(), &key));
    }

    proptest! {
        #[test]
        fn agrees_with_ipnet_about_every_block(bits: u128, v4: u32, prefix in 0_u8..=128, near in 0_u32..128) {
            let other = bits ^ (1 << near);
            let block = ipnet::Ipv6Net::new(bits.into(), prefix).unwrap();
            let is_mapped = |bits: u128| Address::from(IpAddr::from(bits.to_be_bytes())).ip().is_ipv4();
            prop_assume!(!is_mapped(bits) && !is_mapped(other));
            let ip = std::net::Ipv6Addr::from(other);
            prop_assert_eq!(holds(&[&block.to_string()], &ip.to_string()), block.contains(&ip));

            let block = ipnet::Ipv4Net::new(v4.into(), prefix % 33).unwrap();
            let ip = std::net::Ipv4Addr::from(v4 ^ (1 << (near % 32)));
            prop_assert_eq!(holds(&[&block.to_string()], &ip.to_string()), block.contains(&ip));
        }

        #[test]
        fn no_entry_makes_it_panic(any in ".*", near in "[0-9a-f:./%+* ,-]{0,24}") {
            let _ = read(&[&any]);
            let _ = read(&[&near]);
        }
    }
}
