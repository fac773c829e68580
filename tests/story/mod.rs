//! What the stories share: the real binary, mail servers of two makes, a clock that is moved by hand, and HTTP.
#![allow(dead_code, reason = "each story uses its own part of this")]
#![allow(clippy::disallowed_methods, reason = "real processes take real time: what they do is polled for")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a story that can't go on has failed"
)]

pub mod broker;
pub mod mail;
pub mod peer;
pub mod server;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long anything may take on a machine that is busy with everything else.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until it is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    until_some(what, || is_so().then_some(()));
}

/// Waits until there is something.
pub fn until_some<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_some_within(PATIENCE, what, look)
}

/// Waits that long until there is something.
pub fn until_some_within<T>(patience: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < patience, "waited in vain: {what}");
        breathe();
    }
}

/// Lets others work before the next look.
pub fn breathe() {
    std::thread::sleep(Duration::from_millis(5));
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Python of the peers, which `scripts/ensure peers` has made.
pub fn python() -> PathBuf {
    let python = root().join(".build/peers/bin/python");
    assert!(python.exists(), "there is no {}: run scripts/ensure peers first", python.display());
    python
}
