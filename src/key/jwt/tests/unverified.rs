use proptest::prelude::*;

use super::*;

const HEADER: &str = r#"{"alg":"HS256"}"#;

fn unverified(header: &str) -> Verdict {
    Verifier::default().subject(header, NOW, false)
}

fn subject(claims: impl AsRef<[u8]>) -> Verdict {
    unverified(&format!("Bearer {}", token(HEADER, claims)))
}

#[test]
fn reads_the_subject_of_a_token_of_any_kind() {
    assert_eq!(unverified(&format!("Bearer {}", sign_by_secret(&claims()))), alice());
    for pair in PAIRS {
        let token = pair.sign(pair.algorithms[0], Some("k1"), &json!({ "sub": "alice" }));
        assert_eq!(unverified(&format!("Bearer {token}")), alice());
    }
    assert_eq!(subject(r#"{"sub":"Zoë"}"#), Verdict::Subject(Digest::of("Zoë")));
    assert_eq!(subject(r#"{"sub":" a"}"#), Verdict::Subject(Digest::of(" a")));
    assert!(!Verifier::default().verifies());
}

#[test]
fn takes_the_scheme_in_any_case_and_more_blanks_than_one() {
    let token = token(HEADER, r#"{"sub":"alice"}"#);
    for header in [
        format!("bearer {token}"),
        format!("BEARER {token}"),
        format!("Bearer    {token}"),
        format!("Bearer\t{token}"),
        format!("  Bearer {token}  "),
    ] {
        assert_eq!(unverified(&header), alice(), "{header}");
    }
    for header in [
        token.clone(),
        format!("Basic {token}"),
        format!("Bearer{token}"),
        format!("Bearer, {token}"),
        format!("Token {token}"),
    ] {
        assert_eq!(unverified(&header), Verdict::Rejected, "{header}");
    }
}

#[test]
fn takes_padding_but_not_the_other_alphabet() {
    let claims = r#"{"sub":"alice","x":"??>>~~"}"#;
    let padded = |engine: &base64::engine::GeneralPurpose| {
        let parts = [engine.encode(HEADER), engine.encode(claims), "AA==".to_owned()];
        format!("Bearer {}", parts.join("."))
    };
    let url = padded(&base64::engine::general_purpose::URL_SAFE);
    assert!(url.contains("=."));
    assert_eq!(unverified(&url), alice());
    let standard = padded(&base64::engine::general_purpose::STANDARD);
    assert!(standard.contains(['+', '/']));
    assert_eq!(unverified(&standard), Verdict::Rejected);
}

#[test]
fn rejects_what_is_no_token() {
    let [header, claims] = [part(HEADER), part(r#"{"sub":"alice"}"#)];
    for token in [
        String::new(),
        "a".into(),
        "a.b".into(),
        "..".into(),
        "a.b.c.d.e".into(),
        "a.b.c".into(),
        format!("{header}.{claims}"),
        format!("{header}.{claims}."),
        format!("{header}.{claims}.AA.AA"),
        format!("{header}.{claims}.AA.AA.AA"),
        format!("{header}.%%%.AA"),
        format!("{header}. {claims}.AA"),
        format!(".{claims}.AA"),
    ] {
        assert_eq!(unverified(&format!("Bearer {token}")), Verdict::Rejected, "{token}");
    }
    for header in ["", "Bearer", "Bearer ", " ", "Basic dTpw"] {
        assert_eq!(unverified(header), Verdict::Rejected, "{header:?}");
    }
}

#[test]
fn rejects_a_subject_that_is_no_text_or_blank() {
    for claims in [
        "null",
        "[]",
        "\"x\"",
        "1",
        "",
        "{",
        "{}",
        r#"{"sub":null}"#,
        r#"{"sub":123}"#,
        r#"{"sub":{}}"#,
        r#"{"sub":["a"]}"#,
        r#"{"sub":true}"#,
        r#"{"sub":""}"#,
        r#"{"sub":"   "}"#,
        r#"{"sub":"\u00a0\n"}"#,
        r#"{"sub":"\ud800"}"#,
        r#"{"Sub":"alice"}"#,
        r#"{"sub":"alice"} x"#,
    ] {
        assert_eq!(subject(claims), Verdict::Rejected, "{claims}");
    }
    assert_eq!(subject(b"{\"sub\":\"\xff\xfe\"}"), Verdict::Rejected);
    assert_eq!(subject(b"{\"sub\":\"Zo\xeb\"}"), Verdict::Rejected, "Latin-1");
}

#[test]
fn rejects_tokens_that_say_nobody_signed_them() {
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"None"}"#,
        r#"{"alg":"nOnE"}"#,
        r#"{"alg":" none "}"#,
        r#"{"alg":""}"#,
        r#"{"alg":null}"#,
        r#"{"alg":["HS256"]}"#,
        r#"{"typ":"JWT"}"#,
        "{}",
        "[]",
        "",
    ] {
        let token = token(header, r#"{"sub":"victim"}"#);
        assert_eq!(unverified(&format!("Bearer {token}")), Verdict::Rejected, "{header}");
    }
}

#[test]
fn bounds_what_it_looks_at() {
    let claims = |length| format!(r#"{{"sub":"{}"}}"#, "x".repeat(length));
    assert!(matches!(subject(claims(LONGEST_SUBJECT)), Verdict::Subject(_)));
    assert_eq!(subject(claims(LONGEST_SUBJECT + 1)), Verdict::Rejected);
    let padded = |length| format!(r#"{{"sub":"alice","x":"{}"}}"#, "x".repeat(length));
    assert_eq!(subject(padded(5_000)), alice());
    assert_eq!(subject(padded(15_000)), Verdict::Rejected);
    let nested = "[".repeat(5_000);
    assert_eq!(subject(format!(r#"{{"sub":"alice","x":{nested}"#)), Verdict::Rejected);
    let nested = format!("{}{}", "[".repeat(500), "]".repeat(500));
    assert_eq!(subject(format!(r#"{{"sub":"alice","x":{nested}}}"#)), Verdict::Rejected);
}

proptest! {
    #[test]
    fn no_header_makes_it_panic(
        any in ".*",
        header in "\\PC{0,40}",
        claims in proptest::collection::vec(any::<u8>(), 0..60),
        shape in "[Bb]earer [A-Za-z0-9_=.-]{0,80}",
    ) {
        for text in [any, shape, format!("Bearer {}", token(&header, &claims)), format!("Bearer {}", token(HEADER, &claims))] {
            unverified(&text);
            by_secret().subject(&text, NOW, true);
        }
    }
}
