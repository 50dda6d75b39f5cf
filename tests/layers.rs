//! Imports point downward, as the table at the head of `src/lib.rs` says: that table is what is read here.
//!
//! The rule is the strictest one that the code keeps: a module uses itself, modules of lower layers, and modules of its own
//! layer that stand before it in the table, so that no two modules use each other. Besides: no store uses another, only
//! `node` names `napi`, and nobody uses `node`. Tests inside a module are held to the layers too, but may use any module
//! of their own layer.
#![expect(clippy::unwrap_used, reason = "a source that cannot be read fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

/// A module's layer and its place in the table.
type Table = Vec<(String, usize)>;

/// Reads the rows `| 1 | [`yaml`], [`key`] | … |` of a module's head.
fn table(head: &str) -> Table {
    let rows = head.lines().filter_map(|line| line.strip_prefix("//! |"));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    cells
        .filter_map(|cells| {
            Some((cells.first()?.parse::<usize>().ok()?, (*cells.get(1)?).to_owned()))
        })
        .flat_map(|(layer, modules)| {
            let names =
                modules.split(',').map(|name| name.trim().trim_matches(['[', ']', '`']).to_owned());
            names.map(|name| (name, layer)).collect::<Vec<_>>()
        })
        .collect()
}

/// Source without comments, so that prose imports nothing.
fn code(source: &str) -> String {
    let lines = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths that follow `crate::`, groups spelled out: `use crate::{a::B, c}` names `a::B` and `c`.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, root) in code.match_indices("crate::") {
        let own =
            code[..start].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        if own {
            expand(&code[start + root.len()..], "", &mut found);
        }
    }
    found
}

/// Reads one path or one group, and gives what follows it.
fn expand<'a>(text: &'a str, prefix: &str, found: &mut Vec<String>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        while !rest.trim_start().is_empty() && !rest.trim_start().starts_with('}') {
            let after = expand(rest, prefix, found).trim_start();
            let after = after.find([',', '}']).map_or("", |end| &after[end..]);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        return rest.trim_start().strip_prefix('}').unwrap_or_default();
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..end]);
    match text[end..].strip_prefix("::") {
        Some(rest) if end > 0 => expand(rest, &format!("{path}::"), found),
        _ => {
            found.push(path);
            &text[end..]
        }
    }
}

/// What a file may not say. `place` is its path under `src/`.
fn violations(table: &Table, place: &str, source: &str) -> Vec<String> {
    let code = code(source);
    let stem = place.trim_end_matches(".rs").trim_end_matches("/mod");
    let mut modules = stem.split('/');
    let own = modules.next().unwrap_or_default();
    let position = |module: &str| table.iter().position(|(name, _)| name == module);
    let mut wrong = Vec::new();
    let mut complain = |problem: String| wrong.push(format!("{place}: {problem}"));
    if own != "node" && code.contains("napi") && own != "lib" {
        complain("names napi".to_owned());
    }
    if own == "lib" {
        return wrong;
    }
    let Some(here) = position(own) else {
        complain(format!("{own} is in no layer"));
        return wrong;
    };
    let tests = code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len());
    let is_tests = stem.ends_with("tests") || stem.contains("/tests/");
    for (part, free) in [(&code[..tests], is_tests), (&code[tests..], true)] {
        for path in paths(part) {
            let mut names = path.split("::");
            let used = names.next().unwrap_or_default();
            if used == own {
                if own == "store" && names.next() != modules.clone().next() {
                    complain(format!("a store uses crate::{path}"));
                }
                continue;
            }
            match position(used) {
                None => complain(format!("crate::{path} is in no layer")),
                Some(there) => {
                    let (lower, same) =
                        (table[there].1 < table[here].1, table[there].1 == table[here].1);
                    if !(lower || same && (there < here || free)) {
                        complain(format!("crate::{path} is not below {own}"));
                    }
                }
            }
        }
    }
    wrong
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

#[test]
fn every_import_points_downward() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(root.join("lib.rs")).unwrap();
    let table = table(&lib);
    let files = sources(&root);
    assert!(files.len() > 30, "{} files", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let place = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        wrong.extend(violations(&table, &place, &fs::read_to_string(&file).unwrap()));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // The table and the modules are the same.
    let declared = lib.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    let mut declared: Vec<&str> = declared.collect();
    let mut listed: Vec<&str> = table.iter().map(|(name, _)| name.as_str()).collect();
    declared.sort_unstable();
    listed.sort_unstable();
    assert_eq!(declared, listed);
}

#[test]
fn an_import_that_points_upward_is_found() {
    let table = table(
        "//! | layer | modules | what |\n//! |---|---|---|\n//! | 0 | [`clock`], [`policy`] | nouns |\n\
         //! | 1 | [`rule`], [`headers`] | functions |\n//! | 2 | [`store`] | state |\n//! | 4 | `node` | border |\n",
    );
    assert_eq!(table.len(), 6);
    let wrong = |place: &str, source: &str| violations(&table, place, source).len();
    for (place, source) in [
        ("policy.rs", "use crate::clock::DAY;"),
        ("headers.rs", "use crate::rule::Rule;\nuse crate::policy::Policy;"),
        (
            "rule/set.rs",
            "use crate::rule::{Rule, pattern};\n// use crate::node;\n/// See [`crate::store`].",
        ),
        ("rule/tests.rs", "use crate::headers::Headers;"),
        ("rule.rs", "#[cfg(test)]\nmod tests {\n    use crate::headers::Headers;\n}"),
        ("store/memory/shard.rs", "use crate::store::memory::Shard;"),
        ("node/hot.rs", "use napi::Env;\nuse crate::store::memory::Charge;"),
        ("lib.rs", "#[cfg(feature = \"napi\")]\nmod node;"),
    ] {
        assert_eq!(wrong(place, source), 0, "{place}: {source}");
    }
    for (place, source) in [
        ("clock.rs", "use crate::policy::Policy;"),
        ("policy.rs", "use crate::rule::Rule;"),
        ("rule.rs", "use crate::headers::Headers;"),
        ("rule.rs", "fn f() -> crate::store::memory::Charge {}"),
        ("rule.rs", "use crate::{clock::DAY, store::{memory::{A, B}}};"),
        ("rule.rs", "pub(crate) use crate::nowhere::X;"),
        ("rule/tests.rs", "use crate::store::memory::Charge;"),
        ("store/memory/mod.rs", "use crate::store::redis::Connection;"),
        ("store/memory/mod.rs", "use crate::node::hot;"),
        ("store/mod.rs", "use napi_derive::napi;"),
        ("unlisted.rs", ""),
    ] {
        assert_ne!(wrong(place, source), 0, "{place}: {source}");
    }
    assert_eq!(wrong("rule.rs", "use crate::{clock::DAY, store::{memory::{A, B}}, node};"), 3);
}
