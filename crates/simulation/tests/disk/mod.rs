//! Runs a test again in a process whose disk is simulated.
#![allow(clippy::unwrap_used, clippy::panic, reason = "that's how a test fails")]

use std::path::PathBuf;
use std::process::Command;

/// Whether this process has the simulated disk.
const LOADED: &str = "REDELIVER_SIMULATED_DISK";

/// Whether a test may go on, because this process has a simulated disk. If it has none, runs the same test in one that has, and fails
/// if that does.
pub fn is_simulated(test: &str) -> bool {
    if std::env::var_os(LOADED).is_some() {
        return true;
    }
    let library = build(test);
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env("LD_PRELOAD", &library)
        .env(LOADED, "1")
        .output()
        .unwrap();
    let _ = std::fs::remove_file(&library);
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    println!("{}", text(&output.stdout));
    assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    false
}

fn build(test: &str) -> PathBuf {
    let library = format!("redeliver-simulated-disk-{}-{test}.so", std::process::id());
    let library = std::env::temp_dir().join(library);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/disk/shim.c");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&library)
        .args([source, "-ldl"])
        .output()
        .unwrap_or_else(|error| panic!("cannot run cc, the C compiler that this test needs: {error}"));
    assert!(output.status.success(), "cc {source}: {}", String::from_utf8_lossy(&output.stderr));
    library
}
