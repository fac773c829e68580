//! A simulated disk under one store. A preloaded library makes it (`tests/disk/shim.c`); here is how it is told what to do, and
//! what it has after a power cut.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::rng::Rng;

/// The least that a disk writes at once.
const SECTOR_BYTES: usize = 512;

/// Files that the disk has after a power cut.
const FILES: [&str; 2] = ["store.db", "store.db-wal"];

/// What fails.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads, with an I/O error.
    Read,
    /// Writes, with an I/O error after half of their bytes.
    Write,
    /// Whatever makes a file longer: the disk is full.
    Full,
    /// Syncs, with an I/O error; what they should have written is gone, though later ones succeed.
    Sync,
}

impl Kind {
    /// All of them, in the order of their numbers in the library.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Full, Self::Sync];
}

/// A fault of the disk.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What fails.
    pub kind: Kind,
    /// Calls that succeed before.
    pub before: u64,
    /// Calls that fail then; all of them if there is no number.
    pub count: Option<u64>,
}

/// One disk, in a directory of its own that goes with this value.
pub struct Disk {
    directory: PathBuf,
    control: File,
}

impl Disk {
    /// An empty disk without faults.
    pub fn new() -> Result<Self, String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("redeliver-disk-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).map_err(show)?;
        let mut options = File::options();
        options.create(true).truncate(true).read(true).write(true);
        let control = options.open(directory.join("control")).map_err(show)?;
        let disk = Self { directory, control };
        // Without the library, nothing would fail, and nothing would be shown.
        disk.fired().map(|_| disk)
    }

    /// Where the store is.
    pub fn store(&self) -> PathBuf {
        self.directory.join(FILES[0])
    }

    /// From now on there is this fault.
    pub fn begin(&self, fault: Fault) -> Result<(), String> {
        let count = fault.count.unwrap_or(i64::MAX as u64);
        self.tell(&format!("fault {} {} {count}", fault.kind as u8, fault.before))
    }

    /// The fault is over.
    pub fn heal(&self) -> Result<(), String> {
        self.tell("heal")
    }

    /// From now on nothing is read, written or synced.
    pub fn cut_power(&self) -> Result<(), String> {
        self.tell("cut")
    }

    /// How many calls of each kind have failed.
    pub fn fired(&self) -> Result<[u64; 4], String> {
        let mut bytes = [0; 128];
        let length = self.control.read_at(&mut bytes, 0).map_err(show)?;
        let text = String::from_utf8_lossy(&bytes[..length]);
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().map_err(|_| "the library that simulates the disk is not loaded".to_owned())
    }

    /// What the disk has after a power cut, in a directory of its own: what was synced and, of the sectors that were written
    /// since, any.
    pub fn left(&self, rng: &mut Rng) -> Result<PathBuf, String> {
        let left = self.directory.join("left");
        fs::create_dir(&left).map_err(show)?;
        for name in FILES {
            let read = |name: &str| fs::read(self.directory.join(name)).unwrap_or_default();
            let (synced, written) = (read(&format!("synced-{name}")), read(name));
            fs::write(left.join(name), torn(&synced, &written, rng)).map_err(show)?;
        }
        Ok(left.join(FILES[0]))
    }

    fn tell(&self, command: &str) -> Result<(), String> {
        self.control.write_at(command.as_bytes(), 0).map(drop).map_err(show)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(Path::new(&self.directory));
    }
}

/// A file as the disk may have it: what was synced, and of the sectors that were written since, any.
fn torn(synced: &[u8], written: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut torn = synced.to_vec();
    let share = rng.between(0, 1_000);
    if written.len() < synced.len() && rng.chance(share) {
        torn.truncate(written.len());
    }
    for begin in (0..written.len()).step_by(SECTOR_BYTES) {
        let sector = begin..written.len().min(begin + SECTOR_BYTES);
        if synced.get(sector.clone()) != written.get(sector.clone()) && rng.chance(share) {
            torn.resize(torn.len().max(sector.end), 0);
            torn[sector.clone()].copy_from_slice(&written[sector]);
        }
    }
    torn
}

fn show(error: impl std::fmt::Display) -> String {
    error.to_string()
}
