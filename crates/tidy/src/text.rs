//! How files are written: a head, a length, nothing left over.

use crate::tree::{File, Offence, Tree};

/// Lines of a Rust file, at most.
pub const LINES_MAX: usize = 500;

/// Files that are longer, and why they are better whole.
pub const LONG: [(&str, &str); 3] = [
    ("crates/core/src/settle.rs", "the one decision, with the table of its cases below it"),
    ("crates/simulation/src/world.rs", "the one judge: every promise is checked here"),
    ("crates/simulation/src/run.rs", "one run from chaos to judgement"),
];

/// Files where this crate spells out what it bans.
fn is_tidy(file: &File) -> bool {
    file.path.starts_with("crates/tidy/")
}

/// A Rust file begins with a head that says what it is for.
pub fn every_file_begins_with_what_it_is_for(tree: &Tree) -> Vec<Offence> {
    tree.ending(".rs")
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| file.offence(1, "begins without a head (`//! …`)"))
        .collect()
}

/// A Rust file is short, or on the list above; and nothing is on that list that is short or gone.
pub fn a_long_file_has_its_reason(tree: &Tree) -> Vec<Offence> {
    let is_long = |file: &File| file.lines().count() > LINES_MAX;
    let too_long =
        tree.ending(".rs").filter(|file| is_long(file) && !LONG.iter().any(|(path, _)| *path == file.path));
    let mut found: Vec<Offence> = too_long
        .map(|file| {
            file.offence(
                LINES_MAX + 1,
                format!("is {} lines long; does it have two jobs?", file.lines().count()),
            )
        })
        .collect();
    let is_known = |file: &&File| LONG.iter().any(|(path, _)| *path == file.path);
    found.extend(
        tree.files
            .iter()
            .filter(is_known)
            .filter(|file| !is_long(file))
            .map(|file| file.offence(0, "is short: take it off the list of long files")),
    );
    found
}

/// A test runs or is not there.
pub fn no_test_is_ignored(tree: &Tree) -> Vec<Offence> {
    let ignored =
        |line: &str| line.trim_start().starts_with("#[ignore").then(|| "a test is ignored".to_owned());
    tree.ending(".rs").filter(|file| !is_tidy(file)).flat_map(|file| file.offences(ignored)).collect()
}

/// No merge was left half done.
pub fn every_merge_is_finished(tree: &Tree) -> Vec<Offence> {
    let marked = |line: &str| {
        let marks = ["<<<<<<< ", ">>>>>>> "];
        marks.iter().any(|mark| line.starts_with(mark)).then(|| "a merge left both sides here".to_owned())
    };
    tree.files.iter().filter(|file| !is_tidy(file)).flat_map(|file| file.offences(marked)).collect()
}

/// Nothing is marked as unfinished: it is done, or it is an issue.
pub fn nothing_is_left_for_later(tree: &Tree) -> Vec<Offence> {
    const MARKS: [&str; 6] = ["todo!", "unimplemented!", "TODO", "FIXME", "XXX", "HACK"];
    let left = |line: &str| {
        MARKS.into_iter().find(|mark| has_word(line, mark)).map(|mark| format!("{mark} was left for later"))
    };
    [".rs", ".toml", ".sql", ".md", ".sh"]
        .into_iter()
        .flat_map(|end| tree.ending(end))
        .filter(|file| !is_tidy(file))
        .flat_map(|file| file.offences(left))
        .collect()
}

/// `allow` and `expect` say why.
pub fn an_exception_to_a_lint_has_its_reason(tree: &Tree) -> Vec<Offence> {
    let mut found = Vec::new();
    for file in tree.ending(".rs").filter(|file| !is_tidy(file)) {
        for (number, line) in file.lines() {
            let begin = line.trim_start();
            let is_exception = ["#[allow(", "#![allow(", "#[expect(", "#![expect("]
                .iter()
                .any(|word| begin.starts_with(word));
            let attribute = || file.text.lines().skip(number - 1).take_while(|line| line.trim() != ")]");
            let whole: String = match begin.ends_with(")]") {
                true => begin.to_owned(),
                false => attribute().collect(),
            };
            if is_exception && !whole.contains("reason = \"") {
                found.push(file.offence(number, "an exception to a lint without its reason"));
            }
        }
    }
    found
}

/// No blanks at the end of a line, no tabs, a newline at the end of the file.
pub fn lines_end_where_they_end(tree: &Tree) -> Vec<Offence> {
    let untidy = |line: &str| {
        if line.ends_with([' ', '\t', '\r']) {
            Some("blanks at the end of the line".to_owned())
        } else if line.contains('\t') {
            Some("a tab".to_owned())
        } else {
            None
        }
    };
    let mut found = Vec::new();
    for file in [".rs", ".md", ".toml", ".sql"].into_iter().flat_map(|end| tree.ending(end)) {
        found.extend(
            file.text
                .split('\n')
                .enumerate()
                .filter_map(|(n, line)| Some(file.offence(n + 1, untidy(line)?))),
        );
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            found.push(file.offence(file.lines().count(), "no newline at the end of the file"));
        }
        if file.text.ends_with("\n\n") {
            found.push(file.offence(file.lines().count(), "an empty line at the end of the file"));
        }
    }
    found
}

/// Whether a line has this word, not as part of a longer one.
pub fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part))
}
