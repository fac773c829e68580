//! How statements are kept: one per file, each of them used, migrations in order.

use std::collections::BTreeMap;

use crate::tree::{File, Offence, Tree};

/// Files with several statements, and why.
pub const SEVERAL: [(&str, &str); 1] =
    [("crates/stores/src/sqlite/sql/clear.sql", "empties every table at once, between two simulated runs")];

/// One statement per file; migrations aside, which are one step each, and the list above.
pub fn a_sql_file_holds_one_statement(tree: &Tree) -> Vec<Offence> {
    tree.ending(".sql")
        .filter(|file| !file.path.contains("/migrations/"))
        .filter(|file| !SEVERAL.iter().any(|(path, _)| *path == file.path))
        .filter_map(|file| {
            let line = second_statement(&file.text)?;
            Some(file.offence(line, "a second statement"))
        })
        .collect()
}

/// Every statement is included somewhere.
pub fn every_sql_file_is_used(tree: &Tree) -> Vec<Offence> {
    let is_used = |file: &File| {
        let Some((directory, name)) = split_last_two(&file.path) else { return false };
        let include = format!("include_str!(\"{name}\")");
        tree.ending(".rs").any(|user| user.path.starts_with(directory) && user.text.contains(&include))
    };
    tree.ending(".sql")
        .filter(|file| !is_used(file))
        .map(|file| file.offence(0, "no include_str! beside its directory names it"))
        .collect()
}

/// `0001_name.sql`, `0002_name.sql` and so on, in every directory of migrations.
pub fn migrations_are_numbered_without_gaps(tree: &Tree) -> Vec<Offence> {
    let mut directories: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in tree.ending(".sql").filter(|file| file.path.contains("/migrations/")) {
        let directory = file.path.strip_suffix(file.name()).unwrap_or_default();
        directories.entry(directory).or_default().push(file);
    }
    let mut found = Vec::new();
    for files in directories.into_values() {
        for (index, file) in files.into_iter().enumerate() {
            let expected = format!("{:04}_", index + 1);
            if !file.name().starts_with(&expected) {
                found.push(file.offence(0, format!("the next migration should begin with {expected}")));
            }
        }
    }
    found
}

/// `a/b/sql/x.sql` as `a/b/` and `sql/x.sql`.
fn split_last_two(path: &str) -> Option<(&str, &str)> {
    let (directory, _) = path.rsplit_once('/')?;
    let cut = directory.rfind('/')? + 1;
    Some(path.split_at(cut))
}

/// The line of the first word after a semicolon, comments and quoted text aside.
fn second_statement(sql: &str) -> Option<usize> {
    let mut ended = false;
    let mut quoted = false;
    for (index, line) in sql.lines().enumerate() {
        let mut rest = line.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\'' => quoted = !quoted,
                '-' if !quoted && rest.peek() == Some(&'-') => break,
                ';' if !quoted => ended = true,
                c if ended && !c.is_whitespace() => return Some(index + 1),
                _ => {}
            }
        }
    }
    None
}
