//! Invariants of absence: what certain parts of the code never mention.

use crate::text::has_word;
use crate::tree::{File, Offence, Tree};

/// What would take core out of itself.
const OUTSIDE: [&str; 13] = [
    "std::fs",
    "std::net",
    "std::io",
    "std::env",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant",
    "tokio",
    "async",
    "println!",
    "eprintln!",
    "tracing",
];

/// What only whoever decides needs.
const DECISIONS: [&str; 4] = ["settle", "Policy", "Backoff", "Route"];

/// Files that may read the machine's clock, and why.
pub const CLOCK_READERS: [(&str, &str); 4] = [
    ("crates/engine/src/clock.rs", "it is the clock"),
    ("crates/cli/src/clock.rs", "it moves the clock"),
    ("crates/cli/src/commands/bench/mod.rs", "it measures"),
    ("crates/simulation/src/bin/simulate.rs", "it says how long it took"),
];

/// Core reads, writes, waits for and prints nothing.
pub fn core_touches_nothing_outside_itself(tree: &Tree) -> Vec<Offence> {
    sources(tree, "crates/core/src/")
        .flat_map(|file| mentions(file, &OUTSIDE, "core does no I/O and reads no clock"))
        .collect()
}

/// The engine hands over what core decided: it never picks a reason of death itself.
pub fn only_core_decides_a_death(tree: &Tree) -> Vec<Offence> {
    ["crates/engine/src/", "crates/transports/src/", "crates/server/src/"]
        .into_iter()
        .flat_map(|prefix| sources(tree, prefix))
        .flat_map(|file| {
            file.offences(|line| {
                let picks = code(line).contains("DeadReason::") && !line.contains("DeadReason::ALL");
                picks.then(|| "retried or dead is decided in core::settle only".to_owned())
            })
        })
        .collect()
}

/// Stores write what core decided, and have nothing to decide with.
pub fn stores_decide_nothing(tree: &Tree) -> Vec<Offence> {
    ["crates/stores/src/", "crates/engine/src/memory"]
        .into_iter()
        .flat_map(|prefix| sources(tree, prefix))
        .flat_map(|file| mentions(file, &DECISIONS, "a store decides nothing"))
        .collect()
}

/// Whoever is excused from asking the clock is on the list.
pub fn only_the_clock_reads_the_time(tree: &Tree) -> Vec<Offence> {
    tree.ending(".rs")
        .filter(|file| !file.is_test() && !file.path.starts_with("crates/tidy/"))
        .filter(|file| !CLOCK_READERS.iter().any(|(path, _)| *path == file.path))
        .flat_map(|file| mentions(file, &["disallowed_methods"], "only the clock reads the time"))
        .collect()
}

/// An adapter knows the ports, and no other adapter.
pub fn adapters_never_import_one_another(tree: &Tree) -> Vec<Offence> {
    let mut found = Vec::new();
    for group in ["crates/stores/src/", "crates/transports/src/"] {
        let adapter = |file: &File| Some(file.path.strip_prefix(group)?.split_once('/')?.0.to_owned());
        let mut all: Vec<String> = tree.files.iter().filter_map(adapter).collect();
        all.dedup();
        for file in tree.ending(".rs") {
            let Some(own) = adapter(file) else { continue };
            for other in all.iter().filter(|other| **other != own) {
                let names = [format!("crate::{other}"), format!("super::super::{other}")];
                found.extend(file.offences(|line| {
                    let imports = names.iter().any(|name| has_word(code(line), name));
                    imports.then(|| format!("the adapter {own} imports the adapter {other}"))
                }));
            }
        }
    }
    found
}

/// Rust files under a path, tests aside.
fn sources<'a>(tree: &'a Tree, prefix: &'a str) -> impl Iterator<Item = &'a File> {
    tree.ending(".rs").filter(move |file| file.path.starts_with(prefix))
}

/// Lines before the file's own tests that have one of these words outside of comments.
fn mentions<'a>(file: &'a File, words: &'a [&str], why: &'a str) -> impl Iterator<Item = Offence> + 'a {
    let tests =
        file.lines().find(|(_, line)| line.trim() == "#[cfg(test)]").map_or(usize::MAX, |(number, _)| number);
    file.offences(move |line| {
        words.iter().find(|word| has_word(code(line), word)).map(|word| format!("{word}: {why}"))
    })
    .filter(move |offence| offence.line < tests)
}

/// A line without its comment.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}
