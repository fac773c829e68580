//! Builds the library that keeps the image.

use std::path::PathBuf;
use std::process::Command;

/// The library, in a directory of its own.
pub struct Shim {
    directory: tempfile::TempDir,
}

impl Shim {
    pub fn build() -> Self {
        let shim = Self { directory: tempfile::tempdir().unwrap() };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/power_cut/shim.c");
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
            .arg(shim.path())
            .args([source, "-ldl"])
            .output()
            .unwrap_or_else(|error| panic!("cannot run cc, the C compiler that this test needs: {error}"));
        assert!(output.status.success(), "cc {source}: {}", String::from_utf8_lossy(&output.stderr));
        shim
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("power_cut.so")
    }
}
