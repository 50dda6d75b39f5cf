//! A client's address: text as proxies and sockets write it enters, one address by its bits leaves.
//!
//! `::ffff:203.0.113.7`, `::ffff:cb00:7107` and `203.0.113.7:41001` are one client and become one [`Address`]. Which
//! of a request's addresses may be trusted is the framework's question, not this file's.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// An IPv4 or IPv6 address; an IPv6 address that stands for an IPv4 one (`::ffff:0:0/96`) is that IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address(IpAddr);

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        Self(ip.to_canonical())
    }
}

impl Address {
    /// Reads an address with what may stand around it: blanks, quotes, brackets, a port, a zone.
    ///
    /// `010.0.0.1` is none: some read it as octal, and a guess would put one client in another's place.
    pub fn parse(text: &str) -> Option<Self> {
        // The usual case first: what Node's sockets and one trusted proxy give.
        if let Ok(ip) = text.parse::<Ipv4Addr>() {
            return Some(Self(IpAddr::V4(ip)));
        }
        let text = text.trim();
        let text = match text.strip_prefix('"') {
            Some(quoted) => quoted.strip_suffix('"')?.trim(),
            None => text,
        };
        if let Some(bracketed) = text.strip_prefix('[') {
            let (inner, rest) = bracketed.split_once(']')?;
            return if rest.is_empty() || is_port(rest) { parse_v6(inner) } else { None };
        }
        // A bare IPv6 address has at least two colons and no port: `2001:db8::1` is never cut at its last group.
        match text.split_once(':') {
            Some((ip, port)) if !port.contains(':') => {
                let ip = ip.parse::<Ipv4Addr>().ok()?;
                is_digits(port).then_some(Self(IpAddr::V4(ip)))
            }
            _ => Self::parse_bare(text),
        }
    }

    /// Reads an address with nothing around it but a zone.
    pub fn parse_bare(text: &str) -> Option<Self> {
        match text.parse::<Ipv4Addr>() {
            Ok(ip) => Some(Self(IpAddr::V4(ip))),
            Err(_) => parse_v6(text),
        }
    }

    /// The address itself.
    pub fn ip(self) -> IpAddr {
        self.0
    }

    /// Writes the address, an IPv6 one as its network of `subnet` bits: `2001:db8:1:200::/56`. 128 bits are the whole
    /// address and show no suffix; IPv4 is never cut.
    pub fn write_network(self, subnet: u8, out: &mut impl fmt::Write) -> fmt::Result {
        let mut text = [0; LONGEST_TEXT];
        let length = match self.0 {
            IpAddr::V4(ip) => push_v4(&mut text, ip),
            IpAddr::V6(ip) if subnet >= 128 => push_v6(&mut text, ip),
            IpAddr::V6(ip) => {
                let network = Ipv6Addr::from_bits(ip.to_bits() & mask_v6(subnet));
                let at = push_v6(&mut text, network);
                let at = push(&mut text, at, b'/');
                push_decimal(&mut text, at, subnet)
            }
        };
        out.write_str(std::str::from_utf8(&text[..length]).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_network(128, f)
    }
}

/// The mask of an IPv6 network; 0 bits are all addresses.
pub(crate) fn mask_v6(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0)
}

/// The mask of an IPv4 network.
pub(crate) fn mask_v4(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0)
}

fn parse_v6(text: &str) -> Option<Address> {
    let text = match text.split_once('%') {
        Some((_, "")) => return None,
        Some((ip, _)) => ip,
        None => text,
    };
    text.parse::<Ipv6Addr>().ok().map(|ip| Address::from(IpAddr::V6(ip)))
}

/// `:80`, and nothing else.
fn is_port(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(is_digits)
}

fn is_digits(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The longest text: eight groups of four digits with their colons, and `/128`.
const LONGEST_TEXT: usize = 39 + 4;

/// Text is built by hand here, since the formatting machinery of `std` costs more than the rest of a key. The functions
/// take the place to write at and return the next one: in a field it would be stored and loaded with each byte.
type Text = [u8; LONGEST_TEXT];

fn push(text: &mut Text, at: usize, byte: u8) -> usize {
    text[at] = byte;
    at + 1
}

fn push_decimal(text: &mut Text, mut at: usize, number: u8) -> usize {
    if number >= 100 {
        at = push(text, at, b'0' + number / 100);
    }
    if number >= 10 {
        at = push(text, at, b'0' + number / 10 % 10);
    }
    push(text, at, b'0' + number % 10)
}

fn push_v4(text: &mut Text, ip: Ipv4Addr) -> usize {
    let mut at = 0;
    for octet in ip.octets() {
        at = push_decimal(text, at, octet);
        at = push(text, at, b'.');
    }
    at - 1
}

/// RFC 5952: lower case, no leading zeros, `::` for the first of the longest runs of two or more zero groups. Its dotted
/// form is for mapped addresses, and an [`Address`] is none.
fn push_v6(text: &mut Text, ip: Ipv6Addr) -> usize {
    let groups = ip.segments();
    let zeros = longest_zeros(groups);
    let mut at = 0;
    for (index, group) in groups.into_iter().enumerate() {
        if zeros.contains(&index) {
            if index == zeros.start {
                at = push(text, at, b':');
                at = push(text, at, b':');
            }
            continue;
        }
        if index > 0 && index != zeros.end {
            at = push(text, at, b':');
        }
        at = push_hex(text, at, group);
    }
    at
}

fn push_hex(text: &mut Text, mut at: usize, group: u16) -> usize {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    for shift in [12, 8, 4, 0] {
        if shift == 0 || group >> shift > 0 {
            at = push(text, at, DIGITS[usize::from(group >> shift & 15)]);
        }
    }
    at
}

/// The first of the longest runs of two or more zero groups; empty at 0 if there is none.
fn longest_zeros(groups: [u16; 8]) -> Range<usize> {
    let mut longest = 0..0;
    let mut length = 0;
    for (index, group) in groups.into_iter().enumerate() {
        length = if group == 0 { length + 1 } else { 0 };
        if length > longest.len().max(1) {
            longest = index + 1 - length..index + 1;
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(address: &str, subnet: u8) -> String {
        let mut out = String::new();
        Address::parse(address).unwrap().write_network(subnet, &mut out).unwrap();
        out
    }

    #[test]
    fn every_spelling_of_a_mapped_address_is_its_ipv4_address() {
        for spelling in [
            "203.0.113.7",
            "::ffff:203.0.113.7",
            "::FFFF:cb00:7107",
            "0:0:0:0:0:ffff:203.0.113.7",
            "[::ffff:203.0.113.7]:80",
            "::ffff:203.0.113.7%eth0",
        ] {
            assert_eq!(text(spelling, 56), "203.0.113.7", "{spelling}");
        }
        assert_eq!(text("::ffff:203.0.113.8", 56), "203.0.113.8");
        assert_eq!(text("::ffff:1.2.3.4", 56), text("::ffff:102:304", 56));
    }

    #[test]
    fn masks_ipv6_by_bits_and_shows_the_prefix() {
        for spelling in ["2001:db8:1:2::1", "2001:DB8:1:2:0:0:0:1", "2001:db8:1:ff::9"] {
            assert_eq!(text(spelling, 56), "2001:db8:1::/56", "{spelling}");
        }
        assert_eq!(text("2001:db8:1:100::1", 56), "2001:db8:1:100::/56");
        assert_eq!(text("2001:db8:1234:5678::1", 61), "2001:db8:1234:5678::/61");
        assert_eq!(text("2001:db8:1234:567f::1", 61), "2001:db8:1234:5678::/61");
        assert_eq!(text("2001:db8:1234:5678::1", 32), "2001:db8::/32");
        assert_eq!(text("2001:DB8::0001", 128), "2001:db8::1");
    }

    #[test]
    fn masks_an_embedded_ipv4_address_that_is_not_mapped_like_any_other() {
        assert_eq!(text("2001:db8:1234:5678::1.2.3.4", 56), "2001:db8:1234:5600::/56");
        assert_eq!(text("::1.2.3.4", 56), "::/56");
    }

    #[test]
    fn removes_port_brackets_quotes_blanks_and_zone() {
        for spelling in
            ["203.0.113.7:41001", "203.0.113.7:1", " 203.0.113.7\t", "\"203.0.113.7:80\""]
        {
            assert_eq!(text(spelling, 128), "203.0.113.7", "{spelling}");
        }
        for spelling in
            ["[2001:db8::1]:5000", "\"[2001:db8::1]:5000\"", "[2001:db8::1]", "2001:db8::1%eth0"]
        {
            assert_eq!(text(spelling, 128), "2001:db8::1", "{spelling}");
        }
        assert_eq!(text("[fe80::1%eth0]:80", 128), "fe80::1");
    }

    #[test]
    fn never_cuts_the_last_group_of_a_bare_ipv6_address() {
        assert_eq!(text("2001:db8::1:5000", 128), "2001:db8::1:5000");
        assert_eq!(text("1:2:3:4:5:6:7:80", 128), "1:2:3:4:5:6:7:80");
        assert_eq!(text("::", 128), "::");
    }

    #[test]
    fn refuses_what_is_no_address() {
        for spelling in [
            "",
            " ",
            "unknown",
            "undefined",
            "010.0.0.1",
            "1.2.3",
            "1.2.3.4.5",
            "256.1.1.1",
            "1.2.3.4:",
            "1.2.3.4:http",
            "1.2.3.4:123456",
            "1.2.3.4:+80",
            "1.2.3.4%eth0",
            ", 203.0.113.7",
            "1.2.3.4, 5.6.7.8",
            "[2001:db8::1",
            "[2001:db8::1]5000",
            "[2001:db8::1]:",
            "[1.2.3.4]:80",
            "\"1.2.3.4",
            "\"",
            "[",
            "[]",
            "%",
            "fe80::1%",
            "2001:db8::g",
            "2001:db8::1/64",
            "1:2:3:4:5:6:7:8:9",
            "_hidden",
            "é",
        ] {
            assert_eq!(Address::parse(spelling), None, "{spelling:?}");
        }
    }

    #[test]
    fn a_mask_of_no_bits_holds_every_address() {
        assert_eq!((mask_v4(0), mask_v4(8), mask_v4(32)), (0, 0xff00_0000, u32::MAX));
        assert_eq!((mask_v6(0), mask_v6(128)), (0, u128::MAX));
        assert_eq!(mask_v6(56), u128::MAX << 72);
    }

    proptest! {
        #[test]
        fn an_address_that_was_written_reads_as_itself(bits: u128, v4: u32, small in 0..u128::from(u64::MAX), sparse in proptest::array::uniform8(0_u16..2)) {
            for ip in [
                IpAddr::V6(Ipv6Addr::from(sparse)),
                IpAddr::V6(Ipv6Addr::from_bits(bits)),
                IpAddr::V6(Ipv6Addr::from_bits(small)),
                IpAddr::V4(Ipv4Addr::from_bits(v4)),
                IpAddr::V6(Ipv4Addr::from_bits(v4).to_ipv6_mapped()),
            ] {
                let address = Address::from(ip);
                let written = address.to_string();
                prop_assert_eq!(Address::parse(&written), Some(address));
                prop_assert_eq!(Address::parse_bare(&written), Some(address));
                prop_assert_eq!(written, address.ip().to_string());
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(any in ".*", near in "[\\[\\]\"0-9a-f:.%/ ]{0,40}") {
            let _ = Address::parse(&any);
            let _ = Address::parse(&near);
        }

        #[test]
        fn two_addresses_share_a_network_exactly_when_their_first_bits_agree(a: u128, flip in 0_u32..128, subnet in 32_u8..=64) {
            let network = |bits| {
                let mut out = String::new();
                Address(IpAddr::V6(Ipv6Addr::from_bits(bits))).write_network(subnet, &mut out).unwrap();
                out
            };
            let other = a ^ (1 << (127 - flip));
            prop_assert_eq!(network(a) == network(other), flip >= u32::from(subnet));
        }
    }
}
