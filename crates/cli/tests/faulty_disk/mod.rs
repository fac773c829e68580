//! A disk that fails when it is told to, under a process that runs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "that's how a test fails")]

use std::path::PathBuf;
use std::process::Command;

/// The library to preload, and the directory that tells it what to do.
pub struct FaultyDisk {
    directory: tempfile::TempDir,
}

impl FaultyDisk {
    pub fn build() -> Self {
        let disk = Self { directory: tempfile::tempdir().unwrap() };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faulty_disk/shim.c");
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(disk.library())
            .args([source, "-ldl"])
            .output()
            .unwrap_or_else(|error| panic!("cannot run cc, the C compiler that this test needs: {error}"));
        assert!(output.status.success(), "cc {source}: {}", String::from_utf8_lossy(&output.stderr));
        disk
    }

    /// The variables of a process whose store has this name.
    pub fn variables(&self, store: &str) -> [(&'static str, String); 3] {
        let library = self.library().display().to_string();
        let directory = self.directory.path().display().to_string();
        [("LD_PRELOAD", library), ("FAULTY_DISK", directory), ("FAULTY_DISK_STORE", store.to_owned())]
    }

    /// From now on the disk has this fault.
    pub fn begin(&self, fault: &str) {
        std::fs::write(self.directory.path().join(fault), "").unwrap();
    }

    /// The fault is over.
    pub fn end(&self, fault: &str) {
        std::fs::remove_file(self.directory.path().join(fault)).unwrap();
    }

    fn library(&self) -> PathBuf {
        self.directory.path().join("faulty_disk.so")
    }
}
