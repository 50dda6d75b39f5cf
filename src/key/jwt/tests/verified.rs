use super::*;

#[test]
fn believes_a_token_that_a_secret_signed() {
    for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
        let key = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
        assert_eq!(ask(&by_secret(), &sign(&key, algorithm, None, &claims())), alice());
        let other = EncodingKey::from_secret(b"another secret").unwrap();
        let forged = sign(&other, algorithm, None, &claims());
        assert_eq!(ask(&by_secret(), &forged), Verdict::Rejected);
    }
}

#[test]
fn believes_a_token_that_a_private_key_signed() {
    for pair in PAIRS {
        let verifier = by_public_key(&pair);
        for algorithm in pair.algorithms {
            let token = pair.sign(*algorithm, Some("whatever"), &claims());
            assert_eq!(ask(&verifier, &token), alice(), "{algorithm:?}");
        }
    }
}

#[test]
fn rejects_a_token_that_was_changed() {
    for pair in PAIRS {
        let token = pair.sign(pair.algorithms[0], None, &claims());
        let (message, signature) = token.rsplit_once('.').unwrap();
        let (header, _) = message.split_once('.').unwrap();
        let mallory = part(claims_with("sub", "mallory".into()).to_string());
        let swapped: String = signature.chars().rev().collect();
        for changed in [
            format!("{header}.{mallory}.{signature}"),
            format!("{message}."),
            format!("{message}.{swapped}"),
            format!("{message}.{}", &signature[..signature.len() - 4]),
            message.to_owned(),
        ] {
            assert_eq!(ask(&by_public_key(&pair), &changed), Verdict::Rejected, "{changed}");
        }
    }
}

#[test]
fn a_public_key_is_never_taken_for_a_secret() {
    for pair in PAIRS {
        let der = pem_contents(pair.public);
        for secret in [pair.public.as_bytes(), pair.public.trim().as_bytes(), &der] {
            let key = EncodingKey::from_secret(secret).unwrap();
            for id in [None, Some("k1")] {
                let forged = sign(&key, Algorithm::HS256, id, &claims());
                assert_eq!(ask(&by_public_key(&pair), &forged), Verdict::Rejected);
                let set = by_set(&[pair.jwk("k1")]).unwrap();
                assert_eq!(ask(&set, &forged), Verdict::Rejected);
            }
        }
    }
}

fn pem_contents(pem: &str) -> Vec<u8> {
    let body: String = pem.lines().filter(|line| !line.contains([' ', '-'])).collect();
    base64::engine::general_purpose::STANDARD.decode(body).unwrap()
}

#[test]
fn an_unsigned_token_is_never_believed() {
    let claims = claims().to_string();
    for algorithm in ["none", "None", "NONE", "nOnE", ""] {
        let unsigned = token(&format!(r#"{{"alg":"{algorithm}"}}"#), &claims);
        let (message, _) = unsigned.rsplit_once('.').unwrap();
        for verifier in [by_secret(), by_public_key(&RSA), by_set(&[RSA.jwk("k1")]).unwrap()] {
            assert_eq!(ask(&verifier, &unsigned), Verdict::Rejected);
            assert_eq!(ask(&verifier, &format!("{message}.")), Verdict::Rejected);
        }
    }
}

#[test]
fn keys_that_a_token_brings_along_are_ignored() {
    let mut header = Header::new(Algorithm::RS256);
    header.jku = Some("https://example.com/jwks.json".into());
    header.x5u = Some("https://example.com/cert.pem".into());
    header.kid = Some("k1".into());
    header.jwk = serde_json::from_value(RSA.jwk("k1")).unwrap();
    let token = encode(&header, &claims(), &RSA.signing_key()).unwrap();
    let verifier = by_set(&[EC256.jwk("k1")]).unwrap();
    assert_eq!(ask(&verifier, &token), Verdict::Rejected);
    let trusting = by_set(&[RSA.jwk("k1")]).unwrap();
    assert_eq!(ask(&trusting, &token), alice());
}

#[test]
fn a_header_that_must_be_understood_is_not_passed_over() {
    let mut header = Header::new(Algorithm::HS256);
    header.crit = Some(vec!["exp".into()]);
    let key = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
    if let Ok(token) = encode(&header, &claims(), &key) {
        assert_eq!(ask(&by_secret(), &token), Verdict::Rejected);
    }
}

#[test]
fn only_the_algorithms_that_were_asked_for_are_taken() {
    let only = read(&[("publicKey", text(RSA.public)), ("algorithms", list(&["PS256"]))]).unwrap();
    assert_eq!(ask(&only, &RSA.sign(Algorithm::PS256, None, &claims())), alice());
    assert_eq!(ask(&only, &RSA.sign(Algorithm::RS256, None, &claims())), Verdict::Rejected);
}

#[test]
fn dates_are_those_of_the_callers_clock() {
    let verifier = by_secret();
    let token = sign_by_secret(&json!({ "sub": "alice", "exp": NOW, "nbf": NOW - 100.0 }));
    for (now, valid) in [
        (NOW - 161.0, false),
        (NOW - 160.0, true),
        (NOW, true),
        (NOW + 59.9, true),
        (NOW + 60.0, false),
        (NOW + 1e9, false),
        (f64::NAN, false),
        // Again from the remembered proof, which must not make a token valid for good.
        (NOW, true),
        (NOW - 161.0, false),
        (NOW + 60.0, false),
    ] {
        let verdict = ask_at(&verifier, &token, now);
        assert_eq!(verdict == alice(), valid, "{now}");
        assert!(valid || verdict == Verdict::Rejected);
    }
}

#[test]
fn a_token_needs_an_end_and_dates_that_are_numbers() {
    for (name, value, valid) in [
        ("exp", json!(NOW + 600.5), true),
        ("exp", json!("9999999999"), false),
        ("exp", json!(null), false),
        ("exp", json!(-1), false),
        ("exp", json!(true), false),
        ("exp", json!([]), false),
        ("nbf", json!(NOW + 59.0), true),
        ("nbf", json!(NOW + 61.0), false),
        ("nbf", json!("0"), false),
        ("nbf", json!(null), false),
        ("iat", json!("yesterday"), true),
    ] {
        let token = sign_by_secret(&claims_with(name, value.clone()));
        assert_eq!(ask(&by_secret(), &token) == alice(), valid, "{name}: {value}");
    }
    assert_eq!(ask(&by_secret(), &sign_by_secret(&json!({ "sub": "alice" }))), Verdict::Rejected);
}

#[test]
fn a_signed_subject_still_has_to_be_one() {
    for subject in [
        json!(null),
        json!(1),
        json!(["a"]),
        json!({}),
        json!(""),
        json!("  "),
        json!("x".repeat(257)),
    ] {
        let token = sign_by_secret(&claims_with("sub", subject.clone()));
        assert_eq!(ask(&by_secret(), &token), Verdict::Rejected, "{subject}");
    }
    for claims in [json!([]), json!("x"), json!(1), json!(null), json!({ "exp": NOW + 600.0 })] {
        assert_eq!(ask(&by_secret(), &sign_by_secret(&claims)), Verdict::Rejected, "{claims}");
    }
}

#[test]
fn issuer_and_audience_are_required_when_they_are_asked_for() {
    for (option, claim) in [("issuer", "iss"), ("audience", "aud")] {
        for asked in [text("me"), list(&["you", "me"])] {
            let verifier = read(&[("secret", text(SECRET)), (option, asked)]).unwrap();
            let ask_with = |value| ask(&verifier, &sign_by_secret(&claims_with(claim, value)));
            assert_eq!(ask_with(json!("me")), alice());
            assert_eq!(ask_with(json!(["me", "others"])), alice());
            for bad in [json!("him"), json!(""), json!([]), json!(["him"]), json!(1), json!(null)] {
                assert_eq!(ask_with(bad.clone()), Verdict::Rejected, "{claim}: {bad}");
            }
            assert_eq!(ask(&verifier, &sign_by_secret(&claims())), Verdict::Rejected);
        }
        let token = sign_by_secret(&claims_with(claim, json!("anybody")));
        assert_eq!(ask(&by_secret(), &token), alice(), "{claim} was not asked for");
    }
}

#[test]
fn the_key_of_a_set_is_the_one_that_the_token_names() {
    let keys = [RSA.jwk("rsa"), EC256.jwk("ec"), EC384.jwk("ec384"), ED.jwk("ed")];
    let verifier = by_set(&keys).unwrap();
    for (pair, id) in [(RSA, "rsa"), (EC256, "ec"), (EC384, "ec384"), (ED, "ed")] {
        let algorithm = pair.algorithms[0];
        assert_eq!(ask(&verifier, &pair.sign(algorithm, Some(id), &claims())), alice(), "{id}");
        assert_eq!(ask(&verifier, &pair.sign(algorithm, None, &claims())), alice(), "{id}");
        for other in ["other", ""] {
            let token = pair.sign(algorithm, Some(other), &claims());
            assert_eq!(ask(&verifier, &token), Verdict::Rejected, "{id}");
        }
    }
    let crossed = EC256.sign(Algorithm::ES256, Some("rsa"), &claims());
    assert_eq!(ask(&verifier, &crossed), Verdict::Rejected);
}

#[test]
fn a_key_of_a_set_is_held_to_its_own_algorithm() {
    // `jwk` says RS256.
    let verifier = by_set(&[RSA.jwk("k1")]).unwrap();
    let token = RSA.sign(Algorithm::PS256, Some("k1"), &claims());
    assert_eq!(ask(&verifier, &token), Verdict::Rejected);
    let mut jwk = RSA.jwk("k1");
    jwk.as_object_mut().unwrap().remove("alg");
    assert_eq!(ask(&by_set(&[jwk]).unwrap(), &token), alice());
}

#[test]
fn an_unknown_key_asks_for_the_set_once() {
    let verifier = by_function();
    let token = RSA.sign(Algorithm::RS256, Some("k1"), &claims());
    let header = format!("Bearer {token}");
    assert_eq!(verifier.subject(&header, NOW, false), Verdict::NeedsKeys);
    assert_eq!(verifier.subject(&header, NOW, true), Verdict::Rejected);
    let unnamed = RSA.sign(Algorithm::RS256, None, &claims());
    assert_eq!(ask(&verifier, &unnamed), Verdict::NeedsKeys);
    // What no set could make good is not worth a fetch.
    assert_eq!(ask(&verifier, &sign_by_secret(&claims())), Verdict::Rejected);
    assert_eq!(ask(&verifier, "a.b.c"), Verdict::Rejected);

    verifier.set_jwks(&json!({ "keys": [RSA.jwk("k1")] }).to_string()).unwrap();
    assert_eq!(verifier.subject(&header, NOW, true), alice());
    assert_eq!(ask(&verifier, &unnamed), alice());
    let rotated = EC256.sign(Algorithm::ES256, Some("k2"), &claims());
    assert_eq!(ask(&verifier, &rotated), Verdict::NeedsKeys);
}

#[test]
fn a_new_set_forgets_the_old_keys_and_their_tokens() {
    let verifier = by_function();
    let set = |keys: &[Json]| verifier.set_jwks(&json!({ "keys": keys }).to_string());
    let token = RSA.sign(Algorithm::RS256, Some("k1"), &claims());
    set(&[RSA.jwk("k1")]).unwrap();
    assert_eq!(ask(&verifier, &token), alice());
    assert!(set(&[]).is_err(), "a set without keys");
    assert_eq!(ask(&verifier, &token), alice(), "the old keys stay");
    set(&[EC256.jwk("k2")]).unwrap();
    assert_eq!(ask(&verifier, &token), Verdict::NeedsKeys);
    set(&[EC256.jwk("k1")]).unwrap();
    assert_eq!(ask(&verifier, &token), Verdict::Rejected);
}

#[test]
fn remembers_a_bounded_number_of_tokens() {
    let verifier = by_secret();
    for n in 0..1100 {
        let token = sign_by_secret(&claims_with("n", n.into()));
        assert_eq!(ask(&verifier, &token), alice());
        assert_eq!(ask(&verifier, &token), alice());
    }
    let verification = verifier.0.as_ref().unwrap();
    assert_eq!(verification.keys.load().remembered(), 1100 - 1024);
}

#[test]
fn bad_tokens_are_not_remembered() {
    let verifier = by_secret();
    let expired = sign_by_secret(&claims_with("exp", 1.into()));
    for bad in [expired.as_str(), "a.b.c", &token(r#"{"alg":"HS256"}"#, claims().to_string())] {
        assert_eq!(ask(&verifier, bad), Verdict::Rejected);
    }
    assert_eq!(verifier.0.as_ref().unwrap().keys.load().remembered(), 0);
}

#[test]
fn a_token_that_is_too_long_is_not_looked_at() {
    let token = sign_by_secret(&claims_with("x", "x".repeat(LONGEST_TOKEN).into()));
    assert_eq!(ask(&by_secret(), &token), Verdict::Rejected);
}
