use std::fmt::Write as _;

use proptest::prelude::*;

use super::RuleSet;
use crate::document::Field;
use crate::yaml;

/// Rules of these matches, each `METHOD /path` or `/path`, and a default.
fn rules(matches: &[&str]) -> RuleSet {
    let mut text =
        "tenants:\n  t:\n    default: { limit: 1, window: 1s }\n    routes:\n".to_owned();
    for wanted in matches {
        let (method, path) = wanted.split_once(' ').unwrap_or(("", wanted));
        let method = if method.is_empty() { "" } else { &format!("method: {method}, ") };
        let rule =
            format!("match: {{ {method}path: '{path}' }}, name: '{wanted}', limit: 1, window: 1s");
        writeln!(text, "    - {{ {rule} }}").unwrap();
    }
    let document = yaml::parse(&text, None).unwrap();
    RuleSet::read(&Field::root(&document, ""), "t").unwrap()
}

fn name<'a>(rules: &'a RuleSet, method: &str, pattern: Option<&str>, path: &str) -> &'a str {
    rules.match_route(method, pattern, path).map_or("none", |index| &rules.rules()[index].name)
}

fn by_path<'a>(rules: &'a RuleSet, path: &str) -> &'a str {
    name(rules, "GET", None, path)
}

#[test]
fn whatever_spells_one_path_comes_under_one_rule() {
    let rules = rules(&["/login", "/users/:id", "/caf%C3%A9"]);
    for path in [
        "/login",
        "/Login",
        "/LOGIN/",
        "//login",
        "/login//",
        "/log%69n",
        "/%4cogin",
        "/%4Cogin",
        "/login?x=1",
        "/login?",
        "/login#x",
        "/login/?a=/b",
        "login",
        "http://host/login",
        "HTTPS://host:1/Login?x",
        "http://user@host//login",
    ] {
        assert_eq!(by_path(&rules, path), "/login", "{path}");
    }
    for path in ["/café", "/caf%c3%a9", "/CAF%C3%A9/"] {
        assert_eq!(by_path(&rules, path), "/caf%C3%A9", "{path}");
    }
    for path in [
        "/users/1",
        "/users/1%2F..",
        "/users/..",
        "/users/%",
        "/users/%zz",
        "/users/:id",
        "/users/*",
    ] {
        assert_eq!(by_path(&rules, path), "/users/:id", "{path}");
    }
    for path in [
        "",
        "/",
        "/log",
        "/loginx",
        "/login/x",
        "/login;x=1",
        "/users",
        "/users/1/2",
        "/a%2Flogin",
        "http://host",
        "http://host?/login",
        "/%6Cogi%",
        "/http://host/login",
    ] {
        assert_eq!(by_path(&rules, path), "default", "{path}");
    }
}

#[test]
fn an_escaped_slash_is_no_slash() {
    let rules = rules(&["/a%2Fb", "/a/b"]);
    assert_eq!(by_path(&rules, "/a%2fb"), "/a%2Fb");
    assert_eq!(by_path(&rules, "/a/b"), "/a/b");
}

#[test]
fn the_star_takes_whatever_is_left() {
    let rules = rules(&["/reports/*"]);
    for path in
        ["/reports/x", "/reports/x/y/z", "/reports", "/reports/", "/REPORTS?x", "/reports/%2e%2e"]
    {
        assert_eq!(by_path(&rules, path), "/reports/*", "{path}");
    }
    assert_eq!(by_path(&rules, "/reportsx"), "default");
}

#[test]
fn the_root_is_a_path_of_its_own() {
    let rules = rules(&["/"]);
    assert_eq!(by_path(&rules, "/"), "/");
    assert_eq!(by_path(&rules, "http://host?x"), "/");
    assert_eq!(by_path(&rules, "/x"), "default");
}

#[test]
fn the_most_specific_rule_wins() {
    let rules = rules(&[
        "*",
        "/:a/b",
        "/a/*",
        "/a/:b",
        "/a/b",
        "/a/b/*",
        "/a/:b/c",
        "POST /a/b",
        "POST /a/*",
    ]);
    for (path, expected) in [
        ("/a/b", "/a/b"),
        ("/a/x", "/a/:b"),
        ("/a", "/a/*"),
        ("/a/b/c", "/a/b/*"),
        ("/a/x/c", "/a/:b/c"),
        ("/a/x/d", "/a/*"),
        ("/z/b", "/:a/b"),
        ("/z", "*"),
        ("/", "*"),
    ] {
        assert_eq!(by_path(&rules, path), expected, "{path}");
    }
    assert_eq!(name(&rules, "POST", None, "/a/b"), "POST /a/b");
    assert_eq!(name(&rules, "POST", None, "/a/x"), "/a/:b", "the path weighs more than the method");
    assert_eq!(name(&rules, "POST", None, "/a/x/d"), "POST /a/*");
}

#[test]
fn methods_are_the_same_in_any_case() {
    let rules = rules(&["post /login"]);
    for method in ["POST", "post", "Post"] {
        assert_eq!(name(&rules, method, None, "/login"), "post /login");
    }
    assert_eq!(name(&rules, "GET", None, "/login"), "default");
}

#[test]
fn head_comes_under_the_rule_of_get_unless_it_has_its_own() {
    let rules = rules(&["GET /a", "GET /b", "HEAD /b", "/b"]);
    assert_eq!(name(&rules, "HEAD", None, "/a"), "GET /a");
    assert_eq!(name(&rules, "head", None, "/b"), "HEAD /b");
    assert_eq!(name(&rules, "GET", None, "/b"), "GET /b");
    assert_eq!(name(&rules, "PUT", None, "/b"), "/b");
}

#[test]
fn the_pattern_of_the_framework_finds_the_rule() {
    let rules = rules(&["/users/:id", "/api/*", "/login"]);
    for (pattern, path, expected) in [
        ("/users/:userId", "/users/1", "/users/:id"),
        ("/users/:id(\\d+)", "/users/1", "/users/:id"),
        ("/users/:id?", "/users/", "/users/:id"),
        ("/Users/:id/", "/users/1%2F..%2F..%2Flogin", "/users/:id"),
        ("/login", "/login;x=1", "/login"),
        ("/api/:version/*splat", "/", "/api/*"),
        ("/api/{*rest}", "/", "/api/*"),
        ("/users/*", "/", "default"),
        ("*", "/x", "default"),
        ("", "/login", "/login"),
    ] {
        assert_eq!(name(&rules, "GET", Some(pattern), path), expected, "{pattern}");
    }
}

#[test]
fn a_rule_for_a_path_holds_where_the_framework_has_a_wider_pattern() {
    let rules = rules(&["*", "/trpc/login", "/trpc/:name"]);
    assert_eq!(name(&rules, "POST", Some("/trpc/:path"), "/trpc/Login"), "/trpc/login");
    assert_eq!(name(&rules, "POST", Some("/trpc/:path"), "/trpc/other"), "/trpc/:name");
    assert_eq!(name(&rules, "POST", Some("/*"), "/trpc/login"), "/trpc/login");
}

#[test]
fn a_skipped_route_is_not_limited_by_the_default() {
    let text = "tenants: { t: { default: { limit: 1, window: 1s }, routes: [{ match: { path: /health }, skip: true }] } }";
    let document = yaml::parse(text, None).unwrap();
    let rules = RuleSet::read(&Field::root(&document, ""), "t").unwrap();
    assert_eq!(rules.match_route("GET", None, "/health/"), None);
    assert_eq!(name(&rules, "GET", None, "/"), "default");
}

#[test]
fn a_single_rule_is_for_every_request() {
    let rules = RuleSet::single(rules(&[]).rules()[0].clone());
    assert_eq!(rules.match_route("GET", Some("/x"), "/y"), Some(0));
    assert!(rules.knows_tenant());
}

/// Matches that overlap in every way.
fn some_matches() -> impl Strategy<Value = Vec<String>> {
    let segment = || prop::sample::select(vec!["a", "b", ":x"]);
    let path =
        (prop::collection::vec(segment(), 0..4), any::<bool>()).prop_map(|(segments, rest)| {
            format!("/{}{}", segments.join("/"), if rest { "/*" } else { "" })
        });
    let method = prop::sample::select(vec!["", "GET ", "HEAD ", "POST "]);
    prop::collection::btree_set(
        (method, path).prop_map(|(method, path)| format!("{method}{path}")),
        0..12,
    )
    .prop_map(|matches| {
        let mut seen = std::collections::HashSet::new();
        // `//*` is `/*`, which may be there too.
        matches
            .into_iter()
            .map(|wanted| wanted.replace("//", "/"))
            .filter(|wanted| seen.insert(wanted.clone()))
            .collect()
    })
}

fn some_path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", ":y", "*"]), 0..5)
        .prop_map(|segments| format!("/{}", segments.join("/")))
}

/// Another spelling of a path, by a list of random numbers.
fn spelled(path: &str, how: &[u8]) -> String {
    let mut spelled = String::new();
    for (at, character) in path.char_indices() {
        match (character, how[at % how.len()] % 4) {
            ('/', 1) => spelled.push_str("//"),
            ('/', _) => spelled.push('/'),
            (other, 1) => spelled.push(other.to_ascii_uppercase()),
            (other, 2) => write!(spelled, "%{:02x}", u32::from(other)).unwrap(),
            (other, 3) => write!(spelled, "%{:02X}", u32::from(other)).unwrap(),
            (other, _) => spelled.push(other),
        }
    }
    spelled + ["", "/", "?x=/a", "#x"][usize::from(how[0] % 4)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_the_rules_makes_no_difference(
        (matches, shuffled) in some_matches().prop_flat_map(|matches| (Just(matches.clone()), Just(matches).prop_shuffle())),
        method in prop::sample::select(vec!["GET", "HEAD", "POST", "PUT"]),
        pattern in prop::option::of(some_path()),
        path in some_path(),
    ) {
        let one = rules(&matches.iter().map(String::as_str).collect::<Vec<_>>());
        let other = rules(&shuffled.iter().map(String::as_str).collect::<Vec<_>>());
        let pattern = pattern.as_deref();
        prop_assert_eq!(name(&one, method, pattern, &path), name(&other, method, pattern, &path));
    }

    #[test]
    fn the_spelling_of_the_path_makes_no_difference(
        matches in some_matches(),
        path in some_path(),
        how in prop::collection::vec(any::<u8>(), 1..16),
    ) {
        let rules = rules(&matches.iter().map(String::as_str).collect::<Vec<_>>());
        prop_assert_eq!(by_path(&rules, &path), by_path(&rules, &spelled(&path, &how)));
    }

    #[test]
    fn no_request_makes_it_panic(pattern in prop::option::of(any::<String>()), path in any::<String>(), method in any::<String>()) {
        rules(&["GET /a", "/:a/b", "/a/*"]).match_route(&method, pattern.as_deref(), &path);
    }
}
