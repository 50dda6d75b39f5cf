use proptest::prelude::*;

use super::*;

fn of(text: &str) -> Key {
    Key::from_text(text).unwrap()
}

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn custom(text: &str) -> Key {
    Key::custom(Bytes::from_slice(text.as_bytes()))
}

#[test]
fn refuses_an_empty_key() {
    for error in [Key::from_text("").unwrap_err(), Key::from_utf16(&[]).unwrap_err()] {
        assert_eq!(
            (error.code, error.to_string().as_str()),
            (code::INVALID_KEY, "key must not be empty")
        );
    }
}

#[test]
fn odd_texts_stay_apart() {
    let texts: Vec<Vec<u16>> = vec![
        vec![0xd800],
        vec![0xd801],
        vec![0xdc00],
        vec![0xfffd],
        vec![0xdc00, 0xd800],
        vec![0xd800, 0xdc00],
        vec![0xd800, u16::from(b'a')],
        units("a\0b"),
        units("a"),
        units("a\r\nb"),
        units("\u{e9}"),
        units("e\u{301}"),
        units("😀"),
        units(" a"),
    ];
    let keys: Vec<Key> = texts.iter().map(|text| Key::from_utf16(text).unwrap()).collect();
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key), "{key:?} occurs twice");
    }
}

#[test]
fn a_lone_surrogate_is_encoded_as_wtf_8() {
    let key = Key::from_utf16(&[0x61, 0xd800, 0x62]).unwrap();
    assert_eq!(key.as_bytes(), [b'a', 0xed, 0xa0, 0x80, b'b']);
    assert_eq!(Key::from_utf16(&[0xdfff]).unwrap().as_bytes(), [0xed, 0xbf, 0xbf]);
    assert_eq!(Key::from_utf16(&[0xd83d, 0xde00]).unwrap().as_bytes(), "😀".as_bytes());
}

#[test]
fn a_long_key_becomes_its_digest_and_stays_its_own() {
    let longest = "x".repeat(LONGEST);
    assert_eq!(of(&longest).as_bytes(), longest.as_bytes());
    let (a, b) = (of(&format!("{longest}a")), of(&format!("{longest}b")));
    assert_eq!((a.as_bytes().len(), a.as_bytes()[0]), (33, 0xff));
    assert_ne!(a, b);
    assert_eq!(a, Key::from_utf16(&units(&format!("{longest}a"))).unwrap());
    assert_ne!(of(&a.text()), a);
    assert!(a.text().starts_with("sha256:") && a.text().len() == 7 + 64);
}

#[test]
fn a_custom_text_cannot_imitate_another_kind() {
    for (text, key) in [
        ("user:42", "user:42"),
        ("ipx", "ipx"),
        ("IP:1.2.3.4", "IP:1.2.3.4"),
        ("ip:203.0.113.7", "custom:ip:203.0.113.7"),
        ("ip:none", "custom:ip:none"),
        ("key:0", "custom:key:0"),
        ("sub:0", "custom:sub:0"),
        ("ip+key:0", "custom:ip+key:0"),
        ("custom:ip:none", "custom:custom:ip:none"),
    ] {
        assert_eq!(custom(text).text(), key);
    }
}

#[test]
fn a_custom_text_is_prefixed_before_it_is_cut_to_its_digest() {
    let text = format!("ip:{}", "x".repeat(LONGEST - 5));
    assert_ne!(custom(&text), custom(&format!("custom:{text}")));
    assert_eq!(custom(&text), of(&format!("custom:{text}")));
}

#[test]
fn keys_never_hold_what_they_were_made_from() {
    let secrets = ["sk_live_SECRET1", "sk_live_SECRET2"];
    let [a, b] = secrets.map(|secret| Key::of_api_key(Digest::of(secret)));
    assert_ne!(a, b);
    for key in [a, b] {
        assert_eq!(key.as_bytes().len(), 4 + 32);
        assert!(!key.text().contains("SECRET") && !format!("{key:?}").contains("SECRET"));
    }
    // printf alice | sha256sum
    let alice = "2bd806c97f0e00af1a1fc3328fa763a9";
    assert_eq!(Key::of_subject(Digest::of("alice")).text(), format!("sub:{alice}"));
    assert_eq!(Key::of_api_key(Digest::of("alice")).text(), format!("key:{alice}"));
    let address = Address::parse("203.0.113.7");
    assert_eq!(
        Key::composite(address.as_ref(), 56, Digest::of("alice")).text(),
        format!("ip+key:203.0.113.7|{alice}")
    );
    assert_eq!(
        Key::composite(None, 56, Digest::of("alice")).text(),
        format!("ip+key:none|{alice}")
    );
}

#[test]
fn debug_output_is_one_line() {
    assert_eq!(format!("{:?}", of("x\r\nERROR \u{1b}[2J")), "Key(\"x\\r\\nERROR \\u{1b}[2J\")");
}

#[test]
fn finds_the_api_key_in_a_composite_key_only() {
    let alone = Key::of_api_key(Digest::of("k"));
    let address = Address::parse("2001:db8::1").unwrap();
    let composite = Key::composite(Some(&address), 56, Digest::of("k"));
    assert_eq!(composite.api_key_of_composite(), Some(alone.clone()));
    assert_eq!(alone.api_key_of_composite(), None);
    assert_eq!(of("ip+key:").api_key_of_composite(), None);
}

/// Texts that meet in prefixes, separators and lengths far more often than random ones.
fn near_texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("ip:".to_owned()),
        Just("key:".to_owned()),
        Just("sub:".to_owned()),
        Just("ip+key:".to_owned()),
        Just("custom:".to_owned()),
        Just("203.0.113.7".to_owned()),
        Just("none".to_owned()),
        Just("|".to_owned()),
        Just("x".repeat(500)),
        "[a-c|:]{0,3}",
    ];
    proptest::collection::vec(part, 1..5).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn two_texts_are_one_key_only_if_they_are_one_text(a in near_texts(), b in near_texts()) {
        prop_assert_eq!(custom(&a) == custom(&b), a == b);
        prop_assume!(!a.is_empty() && !b.is_empty());
        prop_assert_eq!(of(&a) == of(&b), a == b);
    }

    #[test]
    fn utf_16_and_utf_8_of_one_text_are_one_key(text in ".{1,80}") {
        prop_assert_eq!(Key::from_utf16(&units(&text)).unwrap(), of(&text));
    }

    #[test]
    fn utf_16_is_encoded_one_to_one(
        a in proptest::collection::vec(prop_oneof![0xd7fe_u16..0xe002, 0_u16..0x100], 1..4),
        b in proptest::collection::vec(prop_oneof![0xd7fe_u16..0xe002, 0_u16..0x100], 1..4),
    ) {
        prop_assert_eq!(Key::from_utf16(&a).unwrap() == Key::from_utf16(&b).unwrap(), a == b);
    }

    #[test]
    fn no_kind_of_key_is_another(text in near_texts(), secret in ".{0,20}", bits: u32, long: u128) {
        prop_assume!(!text.is_empty());
        let v4 = Address::from(std::net::IpAddr::from(bits.to_be_bytes()));
        let v6 = Address::from(std::net::IpAddr::from(long.to_be_bytes()));
        let digest = Digest::of(&secret);
        let keys = [
            custom(&text),
            Key::of_api_key(digest),
            Key::of_subject(digest),
            Key::no_address(),
            Key::of_address(Some(&v4), 56),
            Key::of_address(Some(&v6), 56),
            Key::composite(Some(&v4), 56, digest),
            Key::composite(None, 56, digest),
        ];
        for (index, key) in keys.iter().enumerate() {
            prop_assert!(!keys[..index].contains(key), "{:?}", key);
            prop_assert!(key.as_bytes()[0] == HASHED || of(&key.text()) == *key);
            // What a function gives back cannot be any of the other kinds, not even when it gives their text.
            prop_assert!(!keys[1..].contains(&custom(&key.text())));
        }
    }
}
