use super::*;

fn refused(options: &[(&str, Value)]) -> ConfigError {
    read(options).unwrap_err()
}

#[test]
fn needs_exactly_one_kind_of_key() {
    assert_eq!(refused(&[]).code, code::MISSING_OPTION);
    assert_eq!(refused(&[("issuer", text("me"))]).code, code::MISSING_OPTION);
    let error = refused(&[("secret", text(SECRET)), ("publicKey", text(RSA.public))]);
    assert_eq!((error.code, error.field.as_str()), (code::CONTRADICTION, "jwt.publicKey"));
    let error = refused(&[("secret", text(SECRET)), ("jwks", Value::Other("a function"))]);
    assert_eq!((error.code, error.field.as_str()), (code::CONTRADICTION, "jwt.jwks"));
    let error = refused(&[("secrets", text(SECRET))]);
    assert_eq!((error.code, error.field.as_str()), (code::UNKNOWN_OPTION, "jwt.secrets"));
    let document = text(SECRET).into();
    let error = Verifier::read(&Field::root(&document, "jwt")).unwrap_err();
    assert_eq!(error.code, code::INVALID_JWT);
}

#[test]
fn refuses_a_secret_that_is_none() {
    for bad in [text(""), text("  "), Value::Number(42.0), text(RSA.public), Value::List(vec![])] {
        let error = refused(&[("secret", bad)]);
        assert_eq!((error.code, error.field.as_str()), (code::INVALID_JWT, "jwt.secret"));
        assert!(!error.to_string().contains("42"), "{error}");
    }
}

#[test]
fn refuses_a_public_key_that_cannot_verify() {
    for bad in [
        text(""),
        text("not a key"),
        text(include_str!("../test_keys/rsa_1024_public.pem")),
        text(RSA.public.replace('M', "N")),
        text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"),
        Value::Number(1.0),
    ] {
        let error = refused(&[("publicKey", bad)]);
        assert_eq!((error.code, error.field.as_str()), (code::INVALID_JWT, "jwt.publicKey"));
    }
    for pair in PAIRS {
        let error = refused(&[("publicKey", text(pair.private))]);
        assert!(error.problem.contains("is a private key"), "{error}");
        assert!(pair.private.lines().skip(2).all(|line| !error.to_string().contains(line)));
    }
}

#[test]
fn takes_a_certificate_for_its_key() {
    let certificate = include_str!("../test_keys/rsa_certificate.pem");
    let verifier = read(&[("publicKey", text(certificate))]).unwrap();
    assert_eq!(ask(&verifier, &RSA.sign(Algorithm::RS256, None, &claims())), alice());
}

#[test]
fn algorithms_are_those_of_the_key() {
    let with = |name, key: Value, algorithms: &[&str]| {
        read(&[(name, key), ("algorithms", list(algorithms))])
    };
    assert!(with("secret", text(SECRET), &["HS256", "HS512"]).is_ok());
    assert!(with("publicKey", text(RSA.public), &["RS256", "PS512"]).is_ok());
    assert!(with("publicKey", text(EC256.public), &["ES256"]).is_ok());
    assert!(with("jwks", Value::Other("a function"), &["RS256", "ES256", "EdDSA"]).is_ok());
    for (name, key, algorithm) in [
        ("secret", text(SECRET), "RS256"),
        ("publicKey", text(RSA.public), "HS256"),
        ("publicKey", text(RSA.public), "ES256"),
        ("publicKey", text(EC256.public), "ES384"),
        ("publicKey", text(ED.public), "ES256"),
        ("jwks", Value::Other("a function"), "HS256"),
        ("secret", text(SECRET), "none"),
        ("secret", text(SECRET), "None"),
        ("secret", text(SECRET), "hs256"),
        ("secret", text(SECRET), ""),
    ] {
        let error = with(name, key, &[algorithm]).unwrap_err();
        assert_eq!((error.code, error.field.as_str()), (code::INVALID_JWT, "jwt.algorithms[0]"));
    }
    assert!(with("secret", text(SECRET), &[]).is_err());
    assert!(read(&[("secret", text(SECRET)), ("algorithms", text("HS256"))]).is_err());
}

#[test]
fn issuer_and_audience_are_names() {
    for option in ["issuer", "audience"] {
        let with = |value| read(&[("secret", text(SECRET)), (option, value)]);
        assert!(with(text("me")).is_ok() && with(list(&["me", "you"])).is_ok());
        for bad in [text(""), list(&[]), list(&["me", " "]), Value::Number(1.0), Value::Bool(true)]
        {
            assert_eq!(with(bad).unwrap_err().code, code::INVALID_JWT);
        }
    }
}

#[test]
fn refuses_a_set_without_a_key_that_can_verify() {
    let mut short = RSA.jwk("short");
    short["n"] = part([0xff; 128]).into();
    let mut even = RSA.jwk("even");
    even["n"] = part([0xfe; 256]).into();
    let mut empty = RSA.jwk("empty");
    empty["n"] = "".into();
    let mut exponent = RSA.jwk("exponent");
    exponent["e"] = part([1]).into();
    let mut off_curve = EC256.jwk("off the curve");
    off_curve["x"] = part([1; 32]).into();
    // Verified as it is, jsonwebtoken would cut 32 bytes out of these and panic.
    let mut cut = ED.jwk("cut");
    cut["x"] = part([1; 31]).into();
    let mut encryption = RSA.jwk("encryption");
    encryption["use"] = "enc".into();
    let mut signing = RSA.jwk("signing");
    signing["key_ops"] = json!(["sign"]);
    let mut crossed = RSA.jwk("crossed");
    crossed["alg"] = "HS256".into();
    let unusable = [
        short,
        even,
        empty,
        exponent,
        off_curve,
        cut,
        encryption,
        signing,
        crossed,
        json!({ "kty": "oct", "k": part(SECRET), "kid": "secret" }),
        json!({ "kty": "EC", "crv": "P-521", "x": part([1; 66]), "y": part([1; 66]) }),
        json!({ "kty": "AKP", "alg": "ML-DSA-44", "pub": "AA" }),
        json!({ "kty": "RSA" }),
        json!("text"),
        json!(null),
        json!({}),
    ];
    for key in &unusable {
        let error = by_set(std::slice::from_ref(key)).unwrap_err();
        assert_eq!((error.code, error.field.as_str()), (code::INVALID_JWT, "jwt.jwks"), "{key}");
    }
    let mut keys = unusable.to_vec();
    keys.push(EC256.jwk("good"));
    let verifier = by_set(&keys).unwrap();
    assert_eq!(ask(&verifier, &EC256.sign(Algorithm::ES256, Some("good"), &claims())), alice());

    for bad in
        [text("https://example.com/jwks.json"), Value::Bool(true), from_json(&json!({})).value]
    {
        assert_eq!(refused(&[("jwks", bad)]).code, code::INVALID_JWT);
    }
}

#[test]
fn a_set_that_is_handed_in_is_checked_like_one_that_was_given() {
    let verifier = by_function();
    for bad in [
        "",
        "{",
        "null",
        "[]",
        "{}",
        r#"{"keys":{}}"#,
        r#"{"keys":[]}"#,
        r#"{"keys":[{"kty":"oct","k":"AA"}]}"#,
    ] {
        let error = verifier.set_jwks(bad).unwrap_err();
        assert_eq!((error.code, error.field.as_str()), (code::INVALID_JWT, "jwt.jwks"), "{bad}");
    }
    for fixed in [Verifier::default(), by_secret(), by_public_key(&RSA)] {
        let set = json!({ "keys": [RSA.jwk("k1")] }).to_string();
        assert_eq!(fixed.set_jwks(&set).unwrap_err().code, code::CONTRADICTION);
    }
}

#[test]
fn debug_output_holds_no_key() {
    for verifier in [by_secret(), by_public_key(&RSA), by_set(&[RSA.jwk("k1")]).unwrap()] {
        let text = format!("{verifier:?}");
        assert!(text.len() < 40 && !text.contains(SECRET), "{text}");
        assert!(verifier.verifies());
    }
    assert!(by_function().fetches_jwks() && !by_secret().fetches_jwks());
}
