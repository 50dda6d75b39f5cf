use std::fmt::Write as _;

use proptest::prelude::*;

use super::parse;
use crate::document::{Document, Value};
use crate::error::code;

fn value(text: &str) -> Value {
    parse(text, None).unwrap().value
}

fn error(text: &str) -> String {
    let error = parse(text, Some("rules.yaml")).unwrap_err();
    assert_eq!(error.code, code::INVALID_RULES);
    error.to_string()
}

fn member<'a>(document: &'a Document, name: &str) -> &'a Document {
    let Value::Map(members) = &document.value else { panic!("{document:?} is no map") };
    &members.iter().find(|(key, _)| key == name).unwrap().1
}

/// The tree without its lines.
fn bare(document: &Document) -> Document {
    let value = match &document.value {
        Value::List(items) => Value::List(items.iter().map(bare).collect()),
        Value::Map(members) => {
            Value::Map(members.iter().map(|(key, member)| (key.clone(), bare(member))).collect())
        }
        other => other.clone(),
    };
    Document { value, line: None }
}

#[test]
fn every_value_knows_its_line() {
    let document =
        parse("# rules\n\ntenants:\n  shop:\n    default: { limit: 5,\n      window: 1m }\n", None)
            .unwrap();
    let shop = member(member(&document, "tenants"), "shop");
    assert_eq!(shop.line, Some(4), "a member stands where its key stands");
    let default = member(shop, "default");
    assert_eq!(member(default, "limit"), &Document { value: Value::Number(5.0), line: Some(5) });
    assert_eq!(member(default, "window").line, Some(6));
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    for (text, number) in [
        ("5", 5.0),
        ("-5", -5.0),
        ("+5", 5.0),
        ("007", 7.0),
        ("0o17", 15.0),
        ("0xff", 255.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1E+3", 1000.0),
        (".inf", f64::INFINITY),
        ("-.Inf", f64::NEG_INFINITY),
        ("1e999", f64::INFINITY),
    ] {
        assert_eq!(
            value(&format!("- {text}")),
            Value::List(vec![Document { value: Value::Number(number), line: Some(1) }]),
            "{text}"
        );
    }
    let Value::List(items) = value("- .nan") else { panic!() };
    assert!(matches!(items[0].value, Value::Number(number) if number.is_nan()));
    for text in [
        "yes", "no", "on", "off", "nan", "inf", "infinity", "1_000", "0b1", "0x", "0o8", "-0x1",
        "10s", "1:30", "--5", ".", "'5'", "\"true\"", "''", "!!str 5",
    ] {
        let Value::List(items) = value(&format!("[{text}]")) else { panic!() };
        assert!(matches!(items[0].value, Value::Text(_)), "{text} is {:?}", items[0].value);
    }
    for text in ["~", "null", "Null", ""] {
        let document = parse(&format!("a: {text}\nb: 1"), None).unwrap();
        assert_eq!(member(&document, "a"), &Document { value: Value::Null, line: Some(1) });
    }
    assert_eq!(bare(member(&parse("a: TRUE", None).unwrap(), "a")).value, Value::Bool(true));
}

#[test]
fn json_is_read_by_the_same_parser() {
    let json = "{\n\t\"tenants\": {\n\t\t\"a\\/b\": {\n\t\t\t\"name\"\t: \"caf\\u00e9 \\ud83d\\ude00 \\\\ud83d\\\\ude00\",\n\t\t\t\"list\": [1, -2.5e3, true, null],\n\t\t\t\"empty\": {}\n\t\t}\n\t}\n}\n";
    let document = parse(json, Some("rules.json")).unwrap();
    let tenant = member(member(&document, "tenants"), "a/b");
    let name = member(tenant, "name");
    assert_eq!(name.value, Value::Text("café 😀 \\ud83d\\ude00".into()));
    assert_eq!(name.line, Some(4));
    assert_eq!(member(tenant, "empty").value, Value::Map(vec![]));
    let Value::List(list) = &member(tenant, "list").value else { panic!() };
    assert_eq!(list[1].value, Value::Number(-2500.0));
}

#[test]
fn json_on_one_long_line_is_read() {
    let routes: Vec<String> = (0..500)
        .map(|n| format!("{{\"match\":{{\"path\":\"/{n}\"}},\"limit\":{n},\"window\":\"1s\"}}"))
        .collect();
    let json = format!("{{\"tenants\":{{\"shop\":{{\"routes\":[{}]}}}}}}", routes.join(","));
    let document = parse(&json, None).unwrap();
    let Value::List(list) = &member(member(member(&document, "tenants"), "shop"), "routes").value
    else {
        panic!()
    };
    assert_eq!(list.len(), 500);
}

#[test]
fn lone_surrogates_are_refused_with_their_line() {
    assert!(error("{\n\"a\": \"\\ud83d\"\n}").starts_with("line 2: rules.yaml: "));
}

#[test]
fn cut_off_text_is_refused_with_its_line() {
    assert!(
        error("{\"tenants\": {\n\"shop\": {\"default\": {\"limit\": 5")
            .starts_with("line 2: rules.yaml: ")
    );
    assert!(error("tenants:\n  shop: [1, 2").starts_with("line 2: rules.yaml: "));
    assert!(error("tenants:\n  - \"open").starts_with("line "));
    assert!(error("tenants:\n\tshop: 1").starts_with("line 2: rules.yaml: "));
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    assert_eq!(
        error("a: 1\nb: 2\n\"a\": 3"),
        "line 3: rules.yaml: the key \"a\" stands here twice"
    );
    assert_eq!(
        error("{\"b\": {\"a\": 1,\n\"a\": 1}}"),
        "line 2: rules.yaml: the key \"a\" stands here twice"
    );
}

#[test]
fn nothing_at_all_is_refused() {
    for text in ["", "\n\n", "# only a comment\n", "---\n", "\u{feff}", "null", "~"] {
        assert_eq!(error(text), "rules.yaml: there is nothing in it", "{text:?}");
    }
}

#[test]
fn a_second_document_is_refused() {
    assert_eq!(error("a: 1\n---\nb: 2"), "line 2: rules.yaml: holds more than one document");
    assert!(parse("---\na: 1\n...\n", None).is_ok());
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_key() {
    assert_eq!(parse("\u{feff}a: 1", None).unwrap(), parse("a: 1", None).unwrap());
    assert_eq!(parse("\u{feff}{\"a\": 1}", None).unwrap(), parse("a: 1", None).unwrap());
}

#[test]
fn a_nul_does_not_end_the_rules_early() {
    assert_eq!(
        error("a: 1\n\0\nb: 2"),
        "line 2: rules.yaml: a NUL character has no place in rules"
    );
}

#[test]
fn keys_are_text() {
    assert_eq!(error("a:\n  1: x"), "line 2: rules.yaml: a key must be text; write it in quotes");
    assert!(error("? [a]\n: x").contains("a key must be text"));
    assert!(error("? {a: b}\n: x").contains("a key must be text"));
    assert!(error("true: x").contains("a key must be text"));
    assert!(parse("'1': x\n'<<': y", None).is_ok());
    assert!(error("a: &a {b: 1}\nc:\n  <<: *a").contains("merge keys"));
}

#[test]
fn tags_are_refused() {
    assert!(error("a: !secret x").contains("line 1: rules.yaml: the tag !secret"));
    assert!(error("a: !!set {b}").contains("the tag"));
}

#[test]
fn an_alias_stands_for_the_whole_value() {
    let document =
        parse("a: &x { limit: 5, list: &y [1, 2] }\nb: *x\nc: *y\n&k key: 1\nd: *k", None).unwrap();
    assert_eq!(bare(member(&document, "a")), bare(member(&document, "b")));
    assert_eq!(member(&document, "b").line, Some(2));
    assert_eq!(bare(member(&document, "c")), bare(member(member(&document, "a"), "list")));
    assert_eq!(member(&document, "d").value, Value::Text("key".into()));
}

#[test]
fn aliases_cannot_blow_a_file_up() {
    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for n in 1..10 {
        let list = vec![format!("*a{}", n - 1); 10].join(", ");
        writeln!(laughs, "a{n}: &a{n} [{list}]").unwrap();
    }
    assert!(error(&laughs).contains("make more of it than rules can be"));
    let long = format!("a: &a \"{}\"\nb: [{}]", "x".repeat(1 << 20), vec!["*a"; 1000].join(", "));
    assert!(error(&long).contains("make more of it than rules can be"));
    assert_eq!(
        error("a: &a [1, *a]"),
        "line 1: rules.yaml: an alias stands inside the value that it names"
    );
    assert!(error("a: *nowhere").contains("unknown anchor"));
}

#[test]
fn nesting_is_bounded() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(&deep(64), None).is_ok());
    assert!(error(&deep(65)).contains("nested deeper than 64"));
    error(&deep(100_000));
    assert!(error(&"- ".repeat(10_000)).contains("nested deeper than 64"));
    let through_an_alias = format!("a: &a {}\nb: {}*a{}", deep(40), "[".repeat(40), "]".repeat(40));
    assert!(error(&through_an_alias).contains("nested deeper than 64"));
}

/// What an operator's file is made of, in any order.
fn yaml_like() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a",
        "b: ",
        "- ",
        "\n",
        "\n  ",
        "\n    ",
        "\t",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        ": ",
        "? ",
        "&x ",
        "*x",
        "!",
        "!!str ",
        "'",
        "\"",
        "\\",
        "\\u",
        "\\ud83d\\ude00",
        "|",
        ">",
        "|2-\n",
        "#",
        " #",
        "---",
        "\n---\n",
        "\n...\n",
        "%YAML 1.2\n",
        "%TAG ! x\n",
        "%",
        "<<: ",
        "~",
        "1",
        ".inf",
        "\u{feff}",
        "é",
        "\u{85}",
        "\u{2028}",
        "\r",
        "\r\n",
        "@",
        "`",
        "!<",
        "<x> ",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(512), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_at_all_makes_the_parser_panic(text in any::<String>()) {
        let _ = super::read(&text);
        let _ = parse(&text, None);
    }

    #[test]
    fn nothing_that_looks_like_yaml_makes_the_parser_panic(text in yaml_like()) {
        let _ = super::read(&text);
        let _ = parse(&text, None);
    }

    #[test]
    fn json_means_what_json_means(json in json()) {
        let text = serde_json::to_string_pretty(&json).unwrap();
        prop_assert_eq!(bare(&parse(&text, None).unwrap()), of_json(&json));
        let text = serde_json::to_string(&json).unwrap();
        prop_assert_eq!(bare(&parse(&text, None).unwrap()), of_json(&json));
    }
}

/// `PROPTEST_CASES` is for a long search by hand.
fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i32>().prop_map(Into::into),
        (-1e6..1e6f64).prop_map(Into::into),
        "[ -~é😀\t\n\"\\\\]{0,12}".prop_map(Into::into),
    ];
    let tree = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map("[ -~é\t]{0,8}", inner, 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-z]{1,4}", tree, 1..4)
        .prop_map(|members| serde_json::Value::Object(members.into_iter().collect()))
}

fn of_json(json: &serde_json::Value) -> Document {
    use serde_json::Value as Json;
    Document::from(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => Value::Number(number.as_f64().unwrap()),
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(of_json).collect()),
        Json::Object(members) => {
            Value::Map(members.iter().map(|(key, member)| (key.clone(), of_json(member))).collect())
        }
    })
}
