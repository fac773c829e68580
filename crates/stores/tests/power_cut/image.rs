//! What a power cut leaves: what was synced, and of what was only written, nothing or any part.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::child::FILE;

/// The least that a disk writes at once.
const SECTOR_BYTES: usize = 512;

/// A directory as its process saw it, and as the disk has it.
pub struct Image {
    _base: tempfile::TempDir,
    /// With everything that was written.
    pub live: PathBuf,
    /// With what was synced; its parts are described in `shim.c`.
    pub durable: PathBuf,
}

/// Numbers that are the same each time.
pub struct Random(pub u64);

impl Image {
    /// An empty directory and its empty image.
    pub fn begin() -> Self {
        let base = tempfile::tempdir().unwrap();
        // SQLite asks for files by their real names.
        let path = base.path().canonicalize().unwrap();
        let (live, durable) = (path.join("live"), path.join("durable"));
        for directory in [&live, &durable, &durable.join("files"), &durable.join("nameless")] {
            fs::create_dir(directory).unwrap();
        }
        Self { _base: base, live, durable }
    }

    /// What is left if nothing got to the disk that wasn't synced.
    pub fn restore(&self, to: &Path) {
        for (name, bytes) in self.synced() {
            fs::write(to.join(name), bytes).unwrap();
        }
    }

    /// What is left if, of the sectors that were written and not synced, some got to the disk.
    pub fn restore_torn(&self, to: &Path, seed: u64) {
        let mut random = Random(seed);
        let share = random.within(1..10);
        let synced = self.synced();
        for (name, written) in files(&self.live) {
            let old = synced.get(&name);
            if old.is_none() && random.within(0..2) == 0 {
                continue;
            }
            let old = old.map(Vec::as_slice).unwrap_or_default();
            fs::write(to.join(name), torn(old, &written, || random.within(0..10) < share)).unwrap();
        }
    }

    /// Bytes of the database that had been written and not synced.
    pub fn discarded_bytes(&self) -> u64 {
        let synced = self.synced();
        let mut count = 0;
        for name in [FILE.to_owned(), format!("{FILE}-wal")] {
            let written = fs::read(self.live.join(&name)).unwrap_or_default();
            let old = synced.get(&name).map(Vec::as_slice).unwrap_or_default();
            count += unsynced(old, &written).map(|sector| sector.len() as u64).sum::<u64>();
        }
        count
    }

    fn synced(&self) -> BTreeMap<String, Vec<u8>> {
        files(&self.durable.join("files"))
    }
}

impl Random {
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The old bytes with some of the sectors that differ in the new ones, and perhaps with the new, shorter length.
fn torn(old: &[u8], written: &[u8], mut lands: impl FnMut() -> bool) -> Vec<u8> {
    let mut torn = old.to_vec();
    if written.len() < old.len() && lands() {
        torn.truncate(written.len());
    }
    for sector in unsynced(old, written) {
        if lands() {
            torn.resize(torn.len().max(sector.end), 0);
            torn[sector.clone()].copy_from_slice(&written[sector]);
        }
    }
    torn
}

/// The sectors of the new bytes that differ from the old ones.
fn unsynced(old: &[u8], written: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let sectors = (0..written.len().div_ceil(SECTOR_BYTES)).map(|n| n * SECTOR_BYTES);
    let sectors = sectors.map(move |begin| begin..written.len().min(begin + SECTOR_BYTES));
    sectors.filter(move |sector| old.get(sector.clone()) != written.get(sector.clone()))
}

fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}
