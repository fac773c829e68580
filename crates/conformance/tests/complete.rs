//! No rule is written down and then never run.
#![allow(clippy::unwrap_used, reason = "a test panics: that is how it fails")]

use std::fs;
use std::path::Path;

/// The rules that a macro's file lists, and those that the files of its folder hold.
fn check(kind: &str) {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let list = fs::read_to_string(src.join(format!("{kind}.rs"))).unwrap();
    let listed: Vec<&str> = list.lines().map(str::trim).collect();
    let mut rules = 0;
    for file in fs::read_dir(src.join(kind)).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
            let rule = line.split('(').next().unwrap();
            assert!(listed.contains(&rule), "{kind} has a rule that no test runs: {rule}");
            rules += 1;
        }
    }
    assert!(rules > 0, "{kind} has rules");
}

#[test]
fn every_rule_is_run() {
    for kind in ["access", "campaigns", "store", "transport", "intake"] {
        check(kind);
    }
}
