//! Nothing here belongs to one machine or one network.

use crate::tree::{File, Offence, Tree};

/// Directories of somebody's machine.
const PLACES: [&str; 4] = ["/home/", "/root/", "/work/", "/tmp/"];

/// What names a registry or sends a build to another one.
const REGISTRIES: [&str; 11] = [
    "index.crates.io",
    "static.crates.io",
    "registry.npmjs.org",
    "pypi.org/simple",
    "files.pythonhosted.org",
    "deb.debian.org",
    "artifactory",
    "replace-with",
    "[registries",
    "index-url",
    "registry =",
];

/// The one source that the lock file may name.
const CRATES_IO: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

/// No absolute path of somebody's machine; tests and scripts may use the directory for what is temporary.
pub fn no_path_of_one_machine(tree: &Tree) -> Vec<Offence> {
    let mut found = Vec::new();
    for file in written(tree) {
        let is_script = file.is_test() || file.path.starts_with("scripts/") || file.path.starts_with(".ci/");
        for place in PLACES.into_iter().filter(|place| !(is_script && *place == "/tmp/")) {
            found.extend(
                file.offences(|line| is_absolute(line, place).then(|| format!("{place} is somebody's own"))),
            );
        }
    }
    found.sort();
    found
}

/// No registry by its name, and every locked crate from the public one.
pub fn no_registry_is_named(tree: &Tree) -> Vec<Offence> {
    let named = |line: &str| {
        REGISTRIES.into_iter().find(|word| line.contains(word)).map(|word| format!("names {word}"))
    };
    let elsewhere = |line: &str| {
        let is_other = line.starts_with("source = ") && line != CRATES_IO;
        is_other.then(|| "comes from another place than the public registry".to_owned())
    };
    let locks = tree.ending("Cargo.lock").flat_map(|file| file.offences(elsewhere));
    written(tree).flat_map(|file| file.offences(named)).chain(locks).collect()
}

/// What people wrote: not the lock file, and not this crate, which spells out what it bans.
fn written(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files
        .iter()
        .filter(|file| !file.path.ends_with("Cargo.lock") && !file.path.starts_with("crates/tidy/"))
}

/// Whether the path begins here: not as the middle of a longer one or of an address.
fn is_absolute(line: &str, place: &str) -> bool {
    let is_middle = |c: char| c.is_alphanumeric() || "._-}*)/".contains(c);
    line.match_indices(place).any(|(at, _)| !line[..at].ends_with(is_middle))
}
