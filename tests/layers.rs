//! The layers of `src/lib.rs`, held to its code: imports point downward, or to the side without going round in a circle,
//! and N-API is named in one place.
#![expect(clippy::unwrap_used, reason = "a source that cannot be read fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the table at the head of `src/lib.rs`, with their layers.
fn layers() -> BTreeMap<String, u32> {
    let head = fs::read_to_string("src/lib.rs").unwrap();
    let mut layers = BTreeMap::new();
    for line in head.lines().filter_map(|line| line.strip_prefix("//! | ")) {
        let mut cells = line.split(" | ");
        let (Some(Ok(layer)), Some(modules)) = (cells.next().map(str::parse), cells.next()) else {
            continue;
        };
        for module in modules.split(", ") {
            layers.insert(module.trim_matches(['[', ']', '`']).to_owned(), layer);
        }
    }
    layers
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The top module that a file belongs to.
fn module_of(path: &Path) -> String {
    let first = path.strip_prefix("src").unwrap().components().next().unwrap();
    first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
}

/// A file's code, without comments and without its tests, which may look anywhere.
fn code_of(path: &Path) -> String {
    if path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("tests.rs")) {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The modules that each module imports, itself excepted.
fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in sources(Path::new("src")) {
        let module = module_of(&path);
        let found = imports.entry(module.clone()).or_default();
        // The text before the first `crate::` imports nothing.
        for rest in code_of(&path).split("crate::").skip(1) {
            let is_name = |c: &char| c.is_ascii_lowercase() || *c == '_';
            let name: String = rest.chars().take_while(is_name).collect();
            if name != module && !name.is_empty() {
                found.insert(name);
            }
        }
    }
    imports.remove("lib");
    imports
}

#[test]
fn every_module_has_a_layer() {
    let modules: BTreeSet<String> = imports().into_keys().collect();
    assert_eq!(modules, layers().into_keys().collect());
}

#[test]
fn imports_point_downward() {
    let layers = layers();
    for (module, imported) in imports() {
        for other in imported {
            assert!(
                layers[&other] <= layers[&module],
                "{module} imports {other}, which is above it"
            );
        }
    }
}

#[test]
fn imports_never_go_round_in_a_circle() {
    let mut imports = imports();
    // Modules whose imports are all gone are taken away until none is left.
    while !imports.is_empty() {
        let free: Vec<String> = imports
            .iter()
            .filter(|(_, imported)| imported.iter().all(|other| !imports.contains_key(other)))
            .map(|(module, _)| module.clone())
            .collect();
        assert!(!free.is_empty(), "a circle: {imports:?}");
        imports.retain(|module, _| !free.contains(module));
    }
}

#[test]
fn only_the_node_module_names_napi() {
    for path in sources(Path::new("src")) {
        if ["node", "lib"].contains(&module_of(&path).as_str()) {
            continue;
        }
        assert!(!code_of(&path).contains("napi"), "{}", path.display());
    }
}
