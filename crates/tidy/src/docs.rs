//! What the documents say is so: links lead somewhere, commands exist.

use crate::tree::{File, Offence, Tree};

const DECISIONS: &str = "docs/decisions/";
const OPERATIONS: &str = "docs/operations.md";

/// Every link to a file leads to one.
pub fn every_link_leads_somewhere(tree: &Tree) -> Vec<Offence> {
    let mut found = Vec::new();
    for file in tree.ending(".md") {
        for (number, line) in file.lines() {
            for link in links(line) {
                let path = link.split('#').next().unwrap_or_default();
                let is_elsewhere = link.contains("://") || link.starts_with("mailto:") || path.is_empty();
                if !is_elsewhere && !resolve(&file.path, path).is_some_and(|path| tree.has(&path)) {
                    found.push(file.offence(number, format!("there is no {path}")));
                }
            }
        }
    }
    found
}

/// Every `make target` that a document names is a target.
pub fn every_make_target_in_the_docs_exists(tree: &Tree) -> Vec<Offence> {
    let Some(makefile) = tree.get("Makefile") else { return Vec::new() };
    let is_target = |name: &str| {
        makefile.text.lines().any(|line| line.split(':').next() == Some(name) && line.contains(':'))
    };
    let mut found = Vec::new();
    for file in tree.ending(".md") {
        let mut fenced = false;
        for (number, line) in file.lines() {
            if line.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            // In the text a command stands between backquotes; in a block it is what a line begins with.
            let commands: Vec<&str> = match fenced {
                true => vec![line],
                false => line.split('`').skip(1).step_by(2).collect(),
            };
            for command in commands {
                let command = command.split('#').next().unwrap_or_default();
                let Some(rest) = command.trim_start().strip_prefix("make ") else { continue };
                let Some(name) = rest.split_whitespace().next() else { continue };
                if !is_target(name) {
                    found.push(file.offence(number, format!("the Makefile has no target {name}")));
                }
            }
        }
    }
    found
}

/// The README names the two commands with which everything begins.
pub fn the_readme_names_its_two_commands(tree: &Tree) -> Vec<Offence> {
    let Some(readme) = tree.get("README.md") else { return missing("README.md") };
    let names = |command: &str| {
        readme.text.lines().any(|line| line.split('#').next().map(str::trim) == Some(command))
    };
    ["make run", "make test"]
        .into_iter()
        .filter(|command| !names(command))
        .map(|command| readme.offence(0, format!("does not show `{command}` on a line of its own")))
        .collect()
}

/// Each decision has a number of its own, and the list of them has them all.
pub fn every_decision_is_listed(tree: &Tree) -> Vec<Offence> {
    let list = format!("{DECISIONS}README.md");
    let pages: Vec<&File> =
        tree.ending(".md").filter(|file| file.path.starts_with(DECISIONS) && file.path != list).collect();
    if pages.is_empty() {
        return Vec::new();
    }
    let Some(list) = tree.get(&list) else { return missing(&list) };
    let mut found = Vec::new();
    let number = |page: &File| {
        let (number, _) = page.name().split_once('-')?;
        (number.len() == 4).then(|| number.parse::<u32>().ok()).flatten()
    };
    for (index, page) in pages.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| number(pages[index]));
        if number(page).is_none_or(|own| Some(own) == before) {
            found.push(page.offence(0, "does not begin with a number of its own, such as 0001-"));
        }
        if !list.text.contains(&format!("]({})", page.name())) {
            found.push(page.offence(0, "is not in the list of decisions"));
        }
    }
    found
}

/// Whoever reads a line of the log finds out what it means.
pub fn every_event_of_the_log_is_explained(tree: &Tree) -> Vec<Offence> {
    let Some(told) = tree.get(OPERATIONS) else { return Vec::new() };
    let mut found = Vec::new();
    for file in tree.ending(".rs").filter(|file| file.path.contains("/src/")) {
        for (number, line) in file.lines() {
            let Some((_, after)) = line.split_once("event = \"") else { continue };
            let name = after.split('"').next().unwrap_or_default();
            if !told.text.contains(&format!("`{name}`")) {
                found.push(file.offence(number, format!("{OPERATIONS} does not say what {name} means")));
            }
        }
    }
    found
}

/// What is run on every change is what everybody runs: no less.
pub fn ci_runs_make_test(tree: &Tree) -> Vec<Offence> {
    let Some(ci) = tree.get(".ci/run") else { return missing(".ci/run") };
    let runs = ci.lines().any(|(_, line)| line.trim() == "exec make test");
    if runs { Vec::new() } else { vec![ci.offence(0, "does not `exec make test`")] }
}

fn missing(path: &str) -> Vec<Offence> {
    vec![Offence { path: path.to_owned(), line: 0, what: "is missing".to_owned() }]
}

/// The targets of `[text](target)` in a line, code aside.
fn links(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for text in line.split('`').step_by(2) {
        for (at, _) in text.match_indices("](") {
            if let Some(link) = text[at + 2..].split(')').next() {
                found.push(link);
            }
        }
    }
    found
}

/// A path as seen from a file, from the root; `None` if it leads out of the repository.
fn resolve(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
