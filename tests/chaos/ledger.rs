//! What was said, on disk before it is said; and what was answered for, after the answer.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Two files, a key a line.
pub struct Ledger {
    dir: tempfile::TempDir,
    said: Mutex<File>,
    answered: Mutex<File>,
    answers: AtomicUsize,
}

impl Ledger {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let create = |name| Mutex::new(File::create(dir.path().join(name)).unwrap());
        Self { said: create("said"), answered: create("answered"), answers: AtomicUsize::new(0), dir }
    }

    /// These are about to be said. They are on disk when this returns.
    pub fn say(&self, keys: &[String]) {
        let mut file = self.said.lock().unwrap();
        file.write_all(lines(keys).as_bytes()).unwrap();
        file.sync_data().unwrap();
    }

    /// These were answered for.
    pub fn answer(&self, keys: &[String]) {
        self.answered.lock().unwrap().write_all(lines(keys).as_bytes()).unwrap();
        self.answers.fetch_add(keys.len(), Ordering::Relaxed);
    }

    /// How many were answered for so far.
    pub fn answered(&self) -> usize {
        self.answers.load(Ordering::Relaxed)
    }

    /// Everything that was said, and everything that was answered for.
    pub fn read(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let read =
            |path: PathBuf| std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
        (read(self.dir.path().join("said")), read(self.dir.path().join("answered")))
    }
}

fn lines(keys: &[String]) -> String {
    keys.iter().map(|key| format!("{key}\n")).collect()
}
