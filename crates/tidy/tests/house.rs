//! The repository keeps its own rules: one test for each.

use std::path::{Path, PathBuf};
use std::process::Command;

use redeliver_tidy::{Rule, Tree};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Fails with all offences at once.
fn keep(rule: Rule) {
    let offences = rule(&Tree::read(&root()).expect("the repository can be read"));
    let lines: String = offences.iter().map(|offence| format!("\n  {offence}")).collect();
    assert!(offences.is_empty(), "{} offences:{lines}", offences.len());
}

macro_rules! tests {
    ($($module:ident { $($rule:ident)* })*) => {
        $($(
            #[test]
            fn $rule() {
                keep(redeliver_tidy::$module::$rule);
            }
        )*)*
    };
}
redeliver_tidy::house_rules!(tests);

#[test]
fn the_tree_is_there() {
    let tree = Tree::read(&root()).unwrap();
    assert!(tree.get("Cargo.toml").is_some() && tree.get("crates/core/src/settle.rs").is_some());
}

#[test]
fn the_shipped_binary_has_no_planted_bugs() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "tree",
            "--package",
            "redeliver-cli",
            "--edges",
            "normal,build,features",
            "--locked",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("redeliver-core"), "{printed}");
    assert_eq!(redeliver_tidy::crates::planted_in(&printed), Vec::<&str>::new());
}
