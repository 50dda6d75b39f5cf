use proptest::prelude::*;

use super::*;
use crate::document::Document;

const ANY_TIME: f64 = 1.8e9;

fn options(members: &[(&str, Value)]) -> Document {
    let member = |(name, value): &(&str, Value)| ((*name).to_owned(), value.clone().into());
    Value::Map(members.iter().map(member).collect()).into()
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn read(members: &[(&str, Value)]) -> Result<Extractor, ConfigError> {
    Extractor::read(&Field::root(&options(members), ""))
}

fn by(source: &str) -> Extractor {
    read(&[("keyExtractor", text(source))]).unwrap()
}

fn ask<'a>(extractor: &Extractor, address: Given<'a>, credential: Option<&'a str>) -> Extraction {
    extractor.extract(&Request { address, credential, keys_final: false }, ANY_TIME)
}

fn found(extraction: Extraction) -> Identity {
    match extraction {
        Extraction::Found(identity) => identity,
        other => panic!("{other:?}"),
    }
}

fn key(extractor: &Extractor, address: &str, credential: Option<&str>) -> String {
    found(ask(extractor, Given::Text(address), credential)).key.text()
}

#[test]
fn counts_by_address_when_nothing_is_said() {
    let extractor = read(&[]).unwrap();
    assert_eq!(extractor.source(), Source::Address);
    assert!(extractor.always_reads_address() && !extractor.verifies());
    assert_eq!(key(&extractor, "203.0.113.7", None), "ip:203.0.113.7");
    assert_eq!(key(&extractor, "::FFFF:cb00:7107", None), "ip:203.0.113.7");
    assert_eq!(key(&extractor, "203.0.113.7:41001", None), "ip:203.0.113.7");
    assert_eq!(key(&extractor, "2001:db8:1:2::1", None), "ip:2001:db8:1::/56");
    assert_eq!(ask(&extractor, Given::Unread, None), Extraction::NeedsAddress);
}

#[test]
fn the_subnet_of_ipv6_can_be_chosen() {
    let with = |value| read(&[("ipv6Subnet", value)]);
    let narrow = with(Value::Number(64.0)).unwrap();
    assert_eq!(key(&narrow, "2001:db8:1:2::1", None), "ip:2001:db8:1:2::/64");
    let whole = with(Value::Bool(false)).unwrap();
    assert_eq!(key(&whole, "2001:DB8:1:2::1", None), "ip:2001:db8:1:2::1");
    assert_eq!(key(&whole, "1.2.3.4", None), "ip:1.2.3.4");
    for bad in [31.0, 65.0, 56.5, f64::NAN, -56.0, f64::INFINITY] {
        let error = with(Value::Number(bad)).unwrap_err();
        assert_eq!(error.code, code::INVALID_IPV6_SUBNET, "{bad}");
    }
    for bad in [Value::Bool(true), text("56")] {
        let error = with(bad).unwrap_err();
        assert_eq!(error.code, code::INVALID_IPV6_SUBNET);
        assert!(
            error
                .to_string()
                .starts_with("ipv6Subnet must be a whole number from 32 to 64, or false")
        );
    }
}

#[test]
fn what_is_no_address_is_never_a_key() {
    for source in ["ip", "api-key-header", "composite", "jwt-sub"] {
        for bad in ["unknown", "", "undefined", ", 203.0.113.7", "010.0.0.1"] {
            let extractor = by(source);
            assert_eq!(ask(&extractor, Given::Text(bad), Some("k")), Extraction::InvalidAddress);
        }
    }
}

#[test]
fn requests_without_an_address_share_one_named_bucket() {
    for source in ["ip", "api-key-header", "composite", "jwt-sub"] {
        let identity = found(ask(&by(source), Given::Missing, None));
        assert_eq!(identity.key, Key::no_address());
        assert!(identity.no_address && !identity.blank && !identity.made_up);
        assert_eq!(identity.address, None);
    }
}

#[test]
fn an_api_key_counts_without_the_address_being_read() {
    let extractor = by("api-key-header");
    assert!(!extractor.always_reads_address());
    let identity = found(ask(&extractor, Given::Unread, Some("sk_live_SECRET1")));
    assert!(identity.made_up && !identity.no_address && identity.address.is_none());
    assert!(identity.key.text().starts_with("key:"));
    let with_address = found(ask(&extractor, Given::Text("1.2.3.4"), Some("sk_live_SECRET1")));
    assert_eq!(with_address.key, identity.key);
    assert_eq!(with_address.address, Address::parse("1.2.3.4"));
    assert_eq!(found(ask(&extractor, Given::Unread, Some(" sk_live_SECRET1\t"))).key, identity.key);
    assert_ne!(found(ask(&extractor, Given::Unread, Some("sk_live_SECRET2"))).key, identity.key);
}

#[test]
fn without_an_api_key_the_address_counts_in_its_own_name_space() {
    let extractor = by("api-key-header");
    for none in [None, Some(""), Some("   "), Some("\t"), Some("\u{a0}")] {
        assert_eq!(ask(&extractor, Given::Unread, none), Extraction::NeedsAddress);
        let identity = found(ask(&extractor, Given::Text("203.0.113.7"), none));
        assert_eq!(identity.key.text(), "ip:203.0.113.7");
        assert!(!identity.made_up);
    }
    for named in ["203.0.113.7", "ip:203.0.113.7", "anonymous", "none", "ip:none"] {
        let other = key(&extractor, "198.51.100.1", Some(named));
        assert!(other.starts_with("key:"), "{other}");
    }
}

#[test]
fn a_composite_key_keeps_its_parts_apart() {
    let extractor = by("composite");
    assert!(extractor.always_reads_address());
    assert_eq!(ask(&extractor, Given::Unread, Some("k")), Extraction::NeedsAddress);
    let clients = [
        ("203.0.113.7", Some("k")),
        ("203.0.113.8", Some("k")),
        ("203.0.113.7", Some("k|203.0.113.7")),
        ("203.0.113.7", Some("203.0.113.7")),
        ("203.0.113.7", None),
        ("2001:db8::1", Some("k")),
        ("2001:db8::1", Some(":1|k")),
    ];
    let keys = clients.map(|(address, credential)| key(&extractor, address, credential));
    for (index, key) in keys.iter().enumerate() {
        assert!(!keys[..index].contains(key), "{key} occurs twice");
    }
    assert!(found(ask(&extractor, Given::Text("1.2.3.4"), Some("k"))).made_up);
    assert!(!found(ask(&extractor, Given::Text("1.2.3.4"), Some(" "))).made_up);
    let without = found(ask(&extractor, Given::Missing, Some("k")));
    assert!(without.no_address && without.key.text().starts_with("ip+key:none|"));
}

#[test]
fn a_subject_that_reads_like_an_address_is_not_that_address() {
    // {"alg":"HS256"} . {"sub":"203.0.113.7"} . (not a signature)
    let header = "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIyMDMuMC4xMTMuNyJ9.AAAA";
    let identity = found(ask(&by("jwt-sub"), Given::Unread, Some(header)));
    assert_eq!(identity.key, Key::of_subject(Digest::of("203.0.113.7")));
    assert!(identity.made_up);
    assert_eq!(key(&by("jwt-sub"), "203.0.113.7", Some("Basic dTpw")), "ip:203.0.113.7");
    assert_eq!(ask(&by("jwt-sub"), Given::Unread, None), Extraction::NeedsAddress);
}

#[test]
fn the_function_of_a_caller_is_taken_at_its_word_but_not_for_another_kind() {
    let extractor = read(&[("keyExtractor", Value::Other("a function"))]).unwrap();
    assert_eq!(extractor.source(), Source::Custom);
    assert!(!extractor.always_reads_address());
    let ask = |text: &str| {
        let units: Vec<u16> = text.encode_utf16().collect();
        found(extractor.extract_custom(Some(&units), Given::Unread))
    };
    let identity = ask("user:42");
    assert_eq!(identity.key.text(), "user:42");
    assert!(!identity.made_up && !identity.blank && identity.address.is_none());
    assert_eq!(ask("ip:203.0.113.7").key.text(), "custom:ip:203.0.113.7");
    assert_ne!(ask(" a").key, ask("a").key);
    let lone = |unit| found(extractor.extract_custom(Some(&[unit]), Given::Unread)).key;
    assert_ne!(lone(0xd800), lone(0xd801));
    let same = Request { address: Given::Unread, credential: Some("key:1"), keys_final: true };
    assert_eq!(found(extractor.extract(&same, ANY_TIME)).key, ask("key:1").key);
}

#[test]
fn a_function_that_gives_nothing_leaves_the_address() {
    let extractor = read(&[("keyExtractor", Value::Other("a function"))]).unwrap();
    for nothing in [None, Some(&[][..]), Some(&[0x20, 0x0a, 0xa0][..])] {
        assert_eq!(extractor.extract_custom(nothing, Given::Unread), Extraction::NeedsAddress);
        let identity = found(extractor.extract_custom(nothing, Given::Text("1.2.3.4")));
        assert!(identity.blank && !identity.no_address && !identity.made_up);
        assert_eq!(identity.key.text(), "ip:1.2.3.4");
        let identity = found(extractor.extract_custom(nothing, Given::Missing));
        assert!(identity.blank && identity.no_address);
        assert_eq!(identity.key, Key::no_address());
        let bad = extractor.extract_custom(nothing, Given::Text("unknown"));
        assert_eq!(bad, Extraction::InvalidAddress);
    }
}

#[test]
fn the_header_option_takes_any_case_and_only_legal_names() {
    assert_eq!(read(&[]).unwrap().key_header(), "x-api-key");
    let with = |name| read(&[("keyExtractor", text("api-key-header")), ("keyHeader", name)]);
    assert_eq!(with(text("X-API-Key")).unwrap().key_header(), "x-api-key");
    for bad in ["", "x api key", "x-api-key:", "x-api-kéy", "x\r\ny", "\"x\""] {
        let error = with(text(bad)).unwrap_err();
        assert_eq!((error.code, error.field.as_str()), (code::INVALID_KEY_HEADER, "keyHeader"));
    }
    assert_eq!(with(Value::Number(1.0)).unwrap_err().code, code::INVALID_KEY_HEADER);
}

#[test]
fn an_unknown_extractor_is_refused_with_what_is_allowed() {
    for bad in [text("IP"), text("header"), Value::Bool(true), Value::Other("a bigint")] {
        let error = read(&[("keyExtractor", bad)]).unwrap_err();
        assert_eq!(error.code, code::INVALID_KEY_EXTRACTOR);
        assert!(
            error.problem.contains("'ip', 'api-key-header', 'jwt-sub', 'composite', or a function")
        );
    }
}

#[test]
fn jwt_belongs_to_jwt_sub_alone() {
    let jwt = Value::Map(vec![("secret".into(), text("s3cret").into())]);
    for source in ["ip", "api-key-header", "composite"] {
        let error = read(&[("keyExtractor", text(source)), ("jwt", jwt.clone())]).unwrap_err();
        assert_eq!((error.code, error.field.as_str()), (code::CONTRADICTION, "jwt"));
    }
    let extractor = read(&[("keyExtractor", text("jwt-sub")), ("jwt", jwt)]).unwrap();
    assert!(extractor.verifies() && !extractor.fetches_jwks());
    assert!(!format!("{extractor:?}").contains("s3cret"));
}

#[test]
fn the_address_key_is_the_one_that_the_address_alone_would_have() {
    let extractor = by("api-key-header");
    let address = Address::parse("2001:db8:1:2::1").unwrap();
    assert_eq!(extractor.address_key(&address).text(), key(&by("ip"), "2001:db8:1:2::1", None));
}

proptest! {
    #[test]
    fn no_request_makes_it_panic(
        source in 0_usize..5,
        address in prop_oneof![".*", "[0-9a-f:.\\[\\]%]{0,30}"],
        credential in proptest::option::of(prop_oneof![".*", "[Bb]earer [A-Za-z0-9_.=-]{0,60}"]),
        units in proptest::option::of(proptest::collection::vec(any::<u16>(), 0..20)),
        now in any::<f64>(),
    ) {
        let extractor = match source {
            4 => read(&[("keyExtractor", Value::Other("a function"))]).unwrap(),
            _ => by(["ip", "api-key-header", "jwt-sub", "composite"][source]),
        };
        for given in [Given::Unread, Given::Missing, Given::Text(&address)] {
            let request = Request { address: given, credential: credential.as_deref(), keys_final: false };
            let answer = extractor.extract(&request, now);
            let settled = matches!(answer, Extraction::Found(_));
            prop_assert!(settled || given != Given::Missing);
            extractor.extract_custom(units.as_deref(), given);
        }
    }
}
