use super::{FailureMode, Rule, RuleSet};
use crate::document::{Document, Field, Value};
use crate::error::{ConfigError, code};
use crate::policy::Algorithm;
use crate::yaml;

fn rule(text: &str) -> Result<Rule, ConfigError> {
    let document = yaml::parse(text, None).unwrap();
    Rule::read(&Field::root(&document, ""), "r".into(), &["headers"])
}

fn set(text: &str) -> Result<RuleSet, ConfigError> {
    let document = yaml::parse(text, None).unwrap();
    RuleSet::read(&Field::root(&document, ""), "shop")
}

/// A document of one tenant, whose fields are the text, indented by four.
fn shop(text: &str) -> Result<RuleSet, ConfigError> {
    set(&format!("tenants:\n  shop:\n    {}\n", text.replace('\n', "\n    ")))
}

fn says(result: Result<impl Sized, ConfigError>, code: &str, text: &str) {
    let Err(error) = result else { panic!("no error, but expected {text}") };
    assert_eq!((error.code, error.to_string().as_str()), (code, text));
}

fn function() -> Document {
    Value::Other("a function").into()
}

fn object(members: Vec<(&str, Document)>) -> Document {
    Value::Map(members.into_iter().map(|(key, member)| (key.to_owned(), member)).collect()).into()
}

fn text(text: &str) -> Document {
    Value::Text(text.to_owned()).into()
}

#[test]
fn one_policy_stands_in_the_fields_of_the_rule() {
    let rule = rule("{ limit: 5, window: 1m, algorithm: token_bucket, burst: 9, cost: 2, onFailure: local, headers: false }").unwrap();
    assert_eq!(rule.name, "r");
    assert_eq!(rule.policies.len(), 1);
    assert_eq!(rule.policies[0].algorithm, Algorithm::TokenBucket);
    assert_eq!(rule.policy_names, ["5-per-1m"]);
    assert_eq!((rule.cost, rule.on_failure, rule.skip), (2.0, Some(FailureMode::Local), false));
    assert!(!rule.limit_is_function && !rule.cost_is_function);
}

#[test]
fn several_policies_stand_in_a_list_and_have_names_of_their_own() {
    let rule = rule(
        "limits:\n- { limit: 5, window: 1s }\n- { limit: 5, window: 1s, algorithm: fixed_window }\n- { limit: 9, window: 1h, name: 5-per-1s }\n- { limit: 9, window: 1h, name: ' ~' }",
    )
    .unwrap();
    assert_eq!(rule.policy_names, ["5-per-1s-2", "5-per-1s-3", "5-per-1s", " ~"]);
    assert_eq!((rule.cost, rule.on_failure), (1.0, None));
}

#[test]
fn a_limit_may_be_a_function_where_it_stands_alone() {
    let document =
        object(vec![("limit", function()), ("window", text("1m")), ("cost", function())]);
    let rule = Rule::read(&Field::root(&document, ""), "r".into(), &[]).unwrap();
    assert!(rule.limit_is_function && rule.cost_is_function);
    assert_eq!((rule.cost, rule.policies[0].limit), (1.0, 0.0));
    assert_eq!(rule.policy_names, ["per-1m"]);

    let list = Value::List(vec![object(vec![("limit", function()), ("window", text("1m"))])]);
    let document = object(vec![("limits", list.into())]);
    says(
        Rule::read(&Field::root(&document, ""), "r".into(), &[]),
        code::INVALID_LIMIT,
        "limits[0].limit can be a function only where the policy stands alone, not in a list",
    );

    let default = object(vec![("limit", function()), ("window", text("1m"))]);
    let tenants = object(vec![("shop", object(vec![("default", default)]))]);
    let document = object(vec![("tenants", tenants)]);
    says(
        RuleSet::read(&Field::root(&document, "rules"), "shop"),
        code::INVALID_LIMIT,
        "rules.tenants.shop.default.limit must be a whole number, not a function",
    );
}

#[test]
fn a_rule_without_any_limit_is_refused() {
    says(rule("cost: 1"), code::MISSING_OPTION, "line 1: needs limit and window, or limits");
    says(rule("window: 1m"), code::MISSING_OPTION, "line 1: needs a limit");
    says(rule("limit: 1"), code::MISSING_OPTION, "line 1: needs a window");
}

#[test]
fn a_list_of_limits_excludes_a_limit_beside_it() {
    says(
        rule("limits: [{ limit: 1, window: 1s }]\nlimit: 5\nwindow: 1m"),
        code::CONTRADICTION,
        "line 1: limits cannot be given together with limit, window",
    );
}

#[test]
fn the_list_of_limits_holds_one_to_eight() {
    let allowed = "must be a list of 1 to 8 policies";
    says(rule("limits: []"), code::INVALID_LIMITS, &format!("line 1: limits {allowed}, not of 0"));
    says(rule("limits: 5"), code::INVALID_LIMITS, &format!("line 1: limits {allowed}, not 5"));
    let nine = "{ limit: 1, window: 1s }, ".repeat(9);
    says(
        rule(&format!("limits: [{nine}]")),
        code::INVALID_LIMITS,
        &format!("line 1: limits {allowed}, not of 9"),
    );
    says(rule("limits: [5]"), code::INVALID_LIMITS, "line 1: limits[0] must be an object, not 5");
}

#[test]
fn bad_values_are_refused_with_path_and_line() {
    for (value, code) in [
        ("limit: -1", code::INVALID_LIMIT),
        ("limit: .nan", code::INVALID_LIMIT),
        ("limit: .inf", code::INVALID_LIMIT),
        ("limit: '100'", code::INVALID_LIMIT),
        ("limit: 1.5", code::INVALID_LIMIT),
        ("limit: 5, window: 0", code::INVALID_WINDOW),
        ("limit: 5, window: 1 minute", code::INVALID_WINDOW),
        ("limit: 5, window: 1e20", code::INVALID_WINDOW),
        ("limit: 5, window: '60'", code::INVALID_WINDOW),
        ("limit: 5, window: 1s, algorithm: sliding_windw", code::INVALID_ALGORITHM),
        ("limit: 5, window: 1s, cost: -1", code::INVALID_COST),
        ("limit: 5, window: 1s, cost: .5", code::INVALID_COST),
        ("limit: 5, window: 1s, cost: 9007199254740992", code::INVALID_COST),
        ("limit: 5, window: 1s, onFailure: shut", code::INVALID_ON_FAILURE),
        ("limit: 5, window: 1s, burst: 5", code::CONTRADICTION),
        ("limit: 5, window: 1s, limitt: 5", code::UNKNOWN_OPTION),
    ] {
        let routes = format!(
            "routes:\n- match: {{ path: /ok }}\n  skip: true\n- {{ match: {{ path: / }}, {value} }}"
        );
        let error = shop(&routes).unwrap_err();
        assert_eq!((error.code, error.line), (code, Some(6)), "{value}: {error}");
        assert!(error.field.starts_with("tenants.shop.routes[1]."), "{error}");
    }
    says(
        shop("routes:\n- match:\n    path: /\n  limit: 5\n  window: 0s"),
        code::INVALID_WINDOW,
        "line 7: tenants.shop.routes[0].window must be a whole number of milliseconds from 1 to 31622400000, or text such as '250ms', '10s', '1m', '1h', '1d', not \"0s\"",
    );
}

#[test]
fn names_of_policies_can_stand_in_a_header() {
    let long = "x".repeat(65);
    for name in ["'a\"b'", "'a\\b'", "é", "''", "\"a\\nb\"", &long] {
        let error =
            rule(&format!("limits: [{{ limit: 1, window: 1s, name: {name} }}]")).unwrap_err();
        assert_eq!((error.code, error.field.as_str()), (code::INVALID_NAME, "limits[0].name"));
    }
    says(
        rule("limits:\n- { limit: 1, window: 1s, name: a }\n- { limit: 2, window: 1s, name: a }"),
        code::INVALID_NAME,
        "line 3: limits[1].name is the name of another policy of this list: \"a\"",
    );
}

#[test]
fn rules_have_the_name_of_what_they_match() {
    let rules = shop(
        "default: { limit: 9, window: 1s }\nroutes:\n- { match: { method: post, path: /Login }, limit: 1, window: 1s }\n- { match: { path: '/r/*' }, limit: 1, window: 1s }\n- { match: { method: PUT }, limit: 1, window: 1s }\n- { match: { path: /x }, name: mine, limit: 1, window: 1s }\n- { match: { path: /health }, skip: true }",
    )
    .unwrap();
    let names: Vec<&str> = rules.rules().iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["POST /Login", "/r/*", "PUT /*", "mine", "/health", "default"]);
    assert!(rules.has_default() && rules.knows_tenant());
}

#[test]
fn two_rules_never_share_a_name() {
    says(
        shop(
            "default: { limit: 1, window: 1s, name: a }\nroutes:\n- { match: { path: /x }, limit: 1, window: 1s }\n- match: { path: /y }\n  limit: 1\n  name: /x\n  window: 1s",
        ),
        code::INVALID_NAME,
        "line 8: tenants.shop.routes[1].name must be another than \"/x\", which tenants.shop.routes[0] has",
    );
    let clash = shop(
        "default: { limit: 1, window: 1s }\nroutes: [{ match: { path: /x }, name: default, limit: 1, window: 1s }]",
    );
    assert_eq!(clash.unwrap_err().code, code::INVALID_NAME);
}

#[test]
fn two_routes_never_mean_the_same_requests() {
    for (one, other) in [
        ("path: /users/:id", "path: /users/:name"),
        ("path: /Login", "path: //login/"),
        ("path: /login", "path: /log%69n"),
        ("{method: get, path: /a}", "{method: GET, path: /a/}"),
        ("method: POST", "{method: POST, path: '/*'}"),
    ] {
        let one = one.trim_matches(['{', '}']);
        let other = other.trim_matches(['{', '}']);
        says(
            shop(&format!(
                "routes:\n- {{ match: {{ {one} }}, name: a, limit: 1, window: 1s }}\n- {{ match: {{ {other} }}, name: b, limit: 1, window: 1s }}"
            )),
            code::INVALID_RULES,
            "line 5: tenants.shop.routes[1].match means the same requests as tenants.shop.routes[0]",
        );
    }
}

#[test]
fn a_match_is_a_method_and_a_path_that_make_sense() {
    for (wanted, path) in [
        ("{}", "match"),
        ("{ path: login }", "match.path"),
        ("{ path: 5 }", "match.path"),
        ("{ path: '' }", "match.path"),
        ("{ path: '/a?b' }", "match.path"),
        ("{ path: '/a#b' }", "match.path"),
        ("{ path: '/*/b' }", "match.path"),
        ("{ path: '/a*' }", "match.path"),
        ("{ path: '/:' }", "match.path"),
        ("{ path: \"/\\n\" }", "match.path"),
        ("{ method: 'GET POST' }", "match.method"),
        ("{ method: [GET] }", "match.method"),
        ("{ host: x }", "match.host"),
        ("5", "match"),
    ] {
        let error =
            shop(&format!("routes:\n- {{ match: {wanted}, limit: 1, window: 1s }}")).unwrap_err();
        assert_eq!(error.field, format!("tenants.shop.routes[0].{path}"), "{wanted}: {error}");
        assert_eq!(error.line, Some(4), "{wanted}: {error}");
    }
    says(
        shop("routes:\n- { limit: 1, window: 1s }"),
        code::MISSING_OPTION,
        "line 4: tenants.shop.routes[0] needs match",
    );
}

#[test]
fn skip_stands_alone() {
    says(
        shop("routes:\n- { match: { path: / }, skip: true, limit: 5, cost: 2 }"),
        code::CONTRADICTION,
        "line 4: tenants.shop.routes[0] cannot skip together with limit, cost",
    );
    assert!(shop("routes:\n- { match: { path: / }, skip: false, limit: 5, window: 1s }").is_ok());
    assert!(shop("routes:\n- { match: { path: / }, skip: yes }").is_err());
}

#[test]
fn one_bad_rule_of_another_tenant_refuses_the_document() {
    says(
        set(
            "tenants:\n  shop:\n    default: { limit: 1, window: 1s }\n  other:\n    default: { limit: 1, windw: 1s }",
        ),
        code::UNKNOWN_OPTION,
        "line 5: tenants.other.default.windw is not an option here; allowed are limit, window, algorithm, burst, align, maxDelay, limits, cost, onFailure, name",
    );
}

#[test]
fn what_is_no_document_of_rules_is_refused() {
    says(set("[1]"), code::INVALID_RULES, "line 1: must be an object, not a list");
    says(
        set("tenant: {}"),
        code::UNKNOWN_OPTION,
        "line 1: tenant is not an option here; allowed are tenants",
    );
    says(set("tenants:"), code::MISSING_OPTION, "line 1: needs tenants");
    says(
        set("tenants: []"),
        code::INVALID_RULES,
        "line 1: tenants must be an object with the rules of each tenant, not a list",
    );
    says(
        set("tenants:\n  shop:"),
        code::INVALID_RULES,
        "line 2: tenants.shop must be an object, not nothing",
    );
    says(
        set("tenants: { '': {} }"),
        code::INVALID_RULES,
        "line 1: tenants. is a tenant without a name",
    );
    says(
        shop("default:\nroutes: []"),
        code::INVALID_RULES,
        "line 3: tenants.shop.default is empty",
    );
    says(
        shop("routes: 5"),
        code::INVALID_RULES,
        "line 3: tenants.shop.routes must be a list of rules, not 5",
    );
}

#[test]
fn a_tenant_that_is_not_there_has_no_rules() {
    let rules = set("tenants: { other: { default: { limit: 1, window: 1s } } }").unwrap();
    assert!(!rules.knows_tenant());
    assert_eq!(rules.match_route("GET", None, "/"), None);
    assert!(set("tenants: { shop: {} }").unwrap().knows_tenant());
}

#[test]
fn lists_are_kept_as_written() {
    let rules = shop("deny: [203.0.113.0/24]\nallow:\n- 10.0.0.0/8\n- user:42").unwrap();
    let deny = Document { value: Value::Text("203.0.113.0/24".into()), line: Some(3) };
    assert_eq!(rules.deny.unwrap().value, Value::List(vec![deny]));
    assert!(matches!(rules.allow.unwrap().value, Value::List(list) if list.len() == 2));
    says(
        shop("deny: [10]"),
        code::INVALID_DENY,
        "line 3: tenants.shop.deny[0] must be text; write it in quotes, not 10",
    );
    assert_eq!(shop("allow: 10.0.0.0/8").unwrap_err().code, code::INVALID_ALLOW);
}

#[test]
fn secrets_are_kept_and_never_shown() {
    let rules = shop("secrets: [{ id: k1, secret: hush }, { id: k2, secret: '${HUSH}' }]").unwrap();
    assert_eq!(rules.secrets[0].secret, "hush");
    assert!(!format!("{rules:?}").contains("hush"));
    for wrong in [
        "hush",
        "[hush]",
        "[{ id: k1, secret: [hush] }]",
        "[{ id: [hush], secret: a }]",
        "[{ id: k1 }]",
        "[{ id: k1, secret: 777 }]",
        "[{ id: k1, secret: '' }]",
        "{ id: hush }",
    ] {
        let error = shop(&format!("secrets: {wrong}")).unwrap_err();
        assert!(
            !error.to_string().contains("hush") && !error.to_string().contains("777"),
            "{error}"
        );
        assert_eq!(error.line, Some(3));
    }
    says(
        shop("secrets:\n- { id: k1, secret: a }\n- { id: k1, secret: b }"),
        code::INVALID_RULES,
        "line 5: tenants.shop.secrets[1] has the id \"k1\" of another secret",
    );
}
