//! Which crate may depend on which, and with what.

use crate::tree::{File, Offence, Tree};

/// Each crate with the crates of ours that it may use. `conformance` judges, `sink` receives and `servers` starts
/// real ones, so every adapter may have them for its tests.
const INWARDS: [(&str, &[&str]); 13] = [
    ("core", &[]),
    ("engine", &["core"]),
    ("stores", &["core", "engine"]),
    ("transports", &["core", "engine"]),
    ("gates", &["core", "engine"]),
    ("server", &["core", "engine"]),
    ("redeliver", &["core", "engine", "stores", "transports"]),
    ("cli", &["core", "engine", "gates", "stores", "transports", "server", "redeliver", "sink"]),
    ("conformance", &["core", "engine"]),
    ("simulation", &["core", "engine", "stores"]),
    ("sink", &[]),
    ("servers", &[]),
    ("tidy", &[]),
];

/// Who sees what in its tests only: rows of an application's table are seen in the console, and are nowhere in memory.
const SEEN_IN_TESTS: [(&str, &str); 1] = [("server", "stores")];

/// What is for tests only: may plant bugs, and is depended on by nothing that is shipped.
const FOR_TESTS: [&str; 4] = ["conformance", "simulation", "servers", "tidy"];

/// What core may use: values, codecs and derives, nothing that reads, writes, waits or draws.
const PURE: [&str; 8] = ["base64", "bytes", "jiff", "serde", "serde_json", "sha2", "thiserror", "uuid"];

/// Dependencies point inwards, as ARCHITECTURE.md draws them.
pub fn crates_point_inwards(tree: &Tree) -> Vec<Offence> {
    let mut found = Vec::new();
    for (name, file) in manifests(tree) {
        let Some((_, allowed)) = INWARDS.iter().find(|(known, _)| *known == name) else {
            found.push(file.offence(0, "is not in the table of crates"));
            continue;
        };
        for dependency in dependencies(file) {
            let Some(ours) = dependency.name.strip_prefix("redeliver-") else { continue };
            let judged = dependency.for_tests
                && ["conformance", "sink", "servers"].contains(&ours)
                && !["core", "engine"].contains(&name);
            let seen = dependency.for_tests && SEEN_IN_TESTS.contains(&(name, ours));
            if !allowed.contains(&ours) && !judged && !seen {
                found.push(file.offence(dependency.line, format!("{name} must not depend on {ours}")));
            }
        }
    }
    found
}

/// What core depends on can be told to be pure by its name.
pub fn core_depends_on_nothing_that_does_io(tree: &Tree) -> Vec<Offence> {
    let Some(file) = tree.get("crates/core/Cargo.toml") else { return Vec::new() };
    dependencies(file)
        .into_iter()
        .filter(|dependency| !dependency.for_tests && !PURE.contains(&dependency.name.as_str()))
        .map(|dependency| {
            file.offence(dependency.line, format!("{} is not known to do no I/O", dependency.name))
        })
        .collect()
}

/// The feature `planted` is asked for only by what is for tests, or handed on as a feature of the same name.
pub fn no_shipped_crate_plants_bugs(tree: &Tree) -> Vec<Offence> {
    let mut found = Vec::new();
    for file in tree.ending("Cargo.toml") {
        let name = crate_name(file).unwrap_or("the workspace");
        if FOR_TESTS.contains(&name) {
            continue;
        }
        let mut section = "";
        for (number, line) in file.lines().filter(|(_, line)| !line.trim_start().starts_with('#')) {
            if line.starts_with('[') {
                section = line.trim();
            }
            let hands_on = section == "[features]" && line.trim_start().starts_with("planted");
            let in_tests = section.contains("dev-dependencies");
            if line.contains("planted") && !hands_on && !in_tests {
                found.push(file.offence(number, format!("{name} plants bugs in what is shipped")));
            }
        }
    }
    found
}

/// Where `planted` is on, in what `cargo tree --edges normal,build,features` prints of the shipped binary.
pub fn planted_in(printed: &str) -> Vec<&str> {
    printed.lines().filter(|line| line.contains("feature \"planted\"")).collect()
}

struct Dependency {
    name: String,
    line: usize,
    for_tests: bool,
}

fn manifests(tree: &Tree) -> impl Iterator<Item = (&str, &File)> {
    tree.ending("/Cargo.toml").filter_map(|file| Some((crate_name(file)?, file)))
}

fn crate_name(file: &File) -> Option<&str> {
    file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")
}

/// Every dependency that a manifest names, under whatever section.
fn dependencies(file: &File) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut section = String::new();
    for (line, text) in file.lines() {
        let text = text.trim();
        if let Some(header) = text.strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
            // `[dependencies.name]`
            if let Some((_, name)) = section.split_once("dependencies.") {
                let for_tests = section.contains("dev-dependencies");
                found.push(Dependency { name: name.to_owned(), line, for_tests });
            }
        } else if section.ends_with("dependencies")
            && let Some((name, _)) = text.split_once(['.', '=', ' '])
            && !text.starts_with('#')
        {
            let for_tests = section.ends_with("dev-dependencies");
            found.push(Dependency { name: name.to_owned(), line, for_tests });
        }
    }
    found
}
