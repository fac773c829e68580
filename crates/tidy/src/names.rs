//! How things are called: by what they are.

use crate::tree::{Offence, Tree};

/// Words that say nothing about a thing.
const EMPTY: [&str; 10] = [
    "manager",
    "managers",
    "service",
    "services",
    "helper",
    "helpers",
    "processor",
    "util",
    "utils",
    "common",
];

/// No type, module or file is named with a word that would fit any other as well.
pub fn names_say_what_a_thing_is(tree: &Tree) -> Vec<Offence> {
    let mut found = Vec::new();
    for file in tree.ending(".rs") {
        for part in file.path.trim_end_matches(".rs").split('/') {
            if let Some(word) = empty_word(part) {
                found.push(file.offence(0, format!("the name {part} says {word:?}, which fits anything")));
            }
        }
        found.extend(file.offences(|line| {
            let name = declared(line)?;
            empty_word(name).map(|word| format!("the name {name} says {word:?}, which fits anything"))
        }));
    }
    found
}

/// The name that a line gives to a type, trait or module.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    let mut before_is_visible = true;
    while let Some(word) = words.next() {
        match word {
            "pub" | "crate" | "super" | "unsafe" if before_is_visible => {}
            "struct" | "enum" | "trait" | "type" | "mod" | "union" if before_is_visible => {
                return words.next();
            }
            _ => before_is_visible = false,
        }
    }
    None
}

fn empty_word(name: &str) -> Option<&'static str> {
    let words = words(name);
    EMPTY.into_iter().find(|empty| words.iter().any(|word| word == empty))
}

/// `RetryService`, `retry_service` and `retry-service` are two words each.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if (c.is_uppercase() || !c.is_alphanumeric()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words
}
