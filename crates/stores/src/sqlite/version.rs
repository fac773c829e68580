//! Which SQLite writes to a file. Versions before 3.51.3 can damage a database with a log when one connection commits
//! while another one writes the log back, and one such program is enough, whatever the others are.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::errors::{Fault, OpenError};

/// The first version that doesn't lose commits when the log begins anew while it is written back.
pub const SQLITE_MIN: SqliteVersion = SqliteVersion(3_051_003);

/// A version of SQLite, by its own number for it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SqliteVersion(u32);

impl SqliteVersion {
    /// The one that this program is linked with.
    pub fn linked() -> Self {
        Self(rusqlite::version_number().unsigned_abs())
    }
}

impl std::fmt::Display for SqliteVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0 / 1_000_000, self.0 / 1_000 % 1_000, self.0 % 1_000)
    }
}

/// Refuses to work with a SQLite that could damage the file: one that the application was linked with instead of ours.
pub(super) fn check_linked(path: &Path) -> Result<(), OpenError> {
    check(path, SqliteVersion::linked())
}

fn check(path: &Path, linked: SqliteVersion) -> Result<(), OpenError> {
    if linked >= SQLITE_MIN {
        return Ok(());
    }
    let why = format!(
        "this program is linked with SQLite {linked}, which can damage it; link {SQLITE_MIN} or newer"
    );
    Err(OpenError::OtherVersion { path: path.to_owned(), why })
}

/// Where the first page says which version wrote it last.
const VERSION_AT: u64 = 96;
const LOG_HEAD_BYTES: u64 = 32;
const FRAME_HEAD_BYTES: u64 = 24;
/// Frames that are looked at: four times what the log is written back at.
const FRAMES_MAX: u64 = 16_000;

/// The oldest SQLite that has written the first page of a database lately: its file, and its log.
///
/// Only for a process without a connection to the file: closing the file here would drop the locks of one.
pub fn oldest_writer(path: &Path) -> Option<SqliteVersion> {
    let in_file = File::open(path).and_then(|file| version_at(&file, 0)).ok().flatten();
    in_file.into_iter().chain(oldest_writer_in_log(path)).min()
}

/// The same of the log alone, which has no locks of its own, so that anybody may look.
pub(super) fn oldest_writer_in_log(path: &Path) -> Option<SqliteVersion> {
    let log = File::open(log_path(path)).ok()?;
    versions_in_log(&log).ok()?.into_iter().min()
}

/// Warns if the log has commits of an older SQLite: another program has the file open with it.
pub(super) fn warn_of_old_writers(db: &Connection) -> Result<(), Fault> {
    let Some(path) = db.path().filter(|path| !path.is_empty()) else { return Ok(()) };
    if let Some(version) = oldest_writer_in_log(Path::new(path)).filter(|version| *version < SQLITE_MIN) {
        tracing::warn!(
            event = "store.doubted",
            version = %version,
            "another program writes to {path} with SQLite {version}, which can damage it: use {SQLITE_MIN} or newer there"
        );
    }
    Ok(())
}

/// The file of a database's log.
fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// The versions in those frames of the log that hold the first page and belong to what it holds now.
fn versions_in_log(log: &File) -> io::Result<Vec<SqliteVersion>> {
    let mut head = [0; LOG_HEAD_BYTES as usize];
    log.read_exact_at(&mut head, 0)?;
    let page_bytes = u64::from(number(&head, 8));
    let salts = &head[16..24];
    let mut versions = Vec::new();
    for n in 0..FRAMES_MAX {
        let at = LOG_HEAD_BYTES + n * (FRAME_HEAD_BYTES + page_bytes);
        let mut frame = [0; FRAME_HEAD_BYTES as usize];
        // Frames of an earlier round are left behind the last one of this round.
        if log.read_exact_at(&mut frame, at).is_err() || &frame[8..16] != salts {
            break;
        }
        if number(&frame, 0) == 1 {
            versions.extend(version_at(log, at + FRAME_HEAD_BYTES)?);
        }
    }
    Ok(versions)
}

/// The version in the first page, which begins here; nothing if nobody has said it.
fn version_at(file: &File, page_at: u64) -> io::Result<Option<SqliteVersion>> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, page_at + VERSION_AT)?;
    let version = u32::from_be_bytes(bytes);
    Ok((version > 0).then_some(SqliteVersion(version)))
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenOptions, Sqlite};

    #[test]
    fn our_sqlite_is_one_that_does_not_damage_its_file() {
        assert!(SqliteVersion::linked() >= SQLITE_MIN, "{}", SqliteVersion::linked());
        assert!(check_linked(Path::new("store.db")).is_ok());
    }

    #[test]
    fn an_older_sqlite_is_refused_by_name() {
        let error = check(Path::new("store.db"), SqliteVersion(3_051_002)).unwrap_err().to_string();
        assert!(error.contains("linked with SQLite 3.51.2") && error.contains("3.51.3"), "{error}");
    }

    #[test]
    fn the_last_writer_is_known_from_the_log_and_from_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        assert_eq!(oldest_writer(&path), None, "there is nothing yet");
        let store = Sqlite::open(&path, OpenOptions::default()).unwrap();
        assert_eq!(oldest_writer_in_log(&path), Some(SqliteVersion::linked()));
        drop(store);
        assert_eq!(oldest_writer(&path), Some(SqliteVersion::linked()));
        // As a program with an old SQLite leaves it.
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&3_040_001_u32.to_be_bytes(), VERSION_AT).unwrap();
        assert_eq!(oldest_writer(&path).unwrap().to_string(), "3.40.1");
    }
}
