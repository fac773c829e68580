//! Opens a database file: who may, with which settings, and what to say if it can't be.

use std::fs::{File, OpenOptions as FileOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FlockOperation, flock};

use super::errors::{Fault, OpenError, open_error};
use super::migrate::migrate;

/// How a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// What for.
    pub role: Role,
    /// What a commit is worth.
    pub durability: Durability,
    /// How long to wait for another process that is writing.
    pub busy_timeout: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { role: Role::Engine, durability: Durability::Full, busy_timeout: Duration::from_secs(5) }
    }
}

/// What a store is opened for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// To carry messages out: one at a time per file.
    Engine,
    /// To accept and to look, beside an engine in another process.
    Client,
}

/// What a commit is worth.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power cut.
    Full,
    /// It survives the end of the process; a power cut may take the last ones.
    Relaxed,
}

impl Durability {
    /// SQLite's number for it.
    pub(super) const fn synchronous(self) -> i64 {
        match self {
            Self::Full => 2,
            Self::Relaxed => 1,
        }
    }
}

/// Room for pages that one connection keeps.
const WRITER_CACHE_KIB: i64 = 8 * 1024;
const READER_CACHE_KIB: i64 = 1024;

/// The log's size at which it is written back: about 16 MiB.
pub(super) const CHECKPOINT_PAGES: i32 = 4_000;

/// What is left of the log's file after it was written back.
const LOG_BYTES_MAX: i64 = 64 * 1024 * 1024;

/// Every statement that one connection says, and a few to spare.
const STATEMENTS_MAX: usize = 128;

/// How often the lock is asked for: whoever only looks whether it is held has it for a moment.
const LOCK_TRIES: usize = 100;

/// The lock that one engine holds for its life. The system lets go of it if the process dies.
pub(super) fn lock(path: &Path) -> Result<File, OpenError> {
    let lock = lock_path(path);
    let file =
        private_file().create(true).truncate(false).open(&lock).map_err(|error| OpenError::Unreachable {
            path: path.to_owned(),
            why: format!("cannot write {}: {error}", lock.display()),
        })?;
    for _ in 0..LOCK_TRIES {
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return Ok(file);
        }
        std::thread::yield_now();
    }
    Err(OpenError::Taken { path: path.to_owned(), lock })
}

/// Whether an engine holds the store in this file at this moment.
pub fn is_held(path: &Path) -> bool {
    // Without the file, nobody has ever held it.
    let Ok(file) = File::open(lock_path(path)) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared).is_err()
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// A file that only its owner may read: messages may hold anything.
fn private_file() -> FileOptions {
    let mut options = FileOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Makes the file of a database that isn't there yet, for its owner alone. SQLite gives the log and its index the same
/// mode. A file that is there keeps the mode that it was given, and isn't opened: closing it would drop SQLite's locks.
fn make_private(path: &Path) {
    // If it can't be made, SQLite says why.
    let _ = private_file().create_new(true).open(path);
}

/// The connection that writes, with the tables of this version.
pub(super) fn open_writer(path: &Path, options: &OpenOptions) -> Result<Connection, OpenError> {
    let open = || -> Result<Connection, Fault> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        make_private(path);
        let db = Connection::open_with_flags(path, flags)?;
        set_up_writer(&db, options)?;
        Ok(db)
    };
    open().map_err(|fault| open_error(path, fault))
}

/// A connection that reads beside the writer.
pub(super) fn open_reader(path: &Path, options: &OpenOptions) -> Result<Connection, OpenError> {
    let open = || -> Result<Connection, Fault> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(options.busy_timeout)?;
        db.pragma_update(None, "query_only", true)?;
        db.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
        keep_statements(&db)?;
        Ok(db)
    };
    open().map_err(|fault| open_error(path, fault))
}

/// Settings and tables for a connection that writes.
pub(super) fn set_up_writer(db: &Connection, options: &OpenOptions) -> Result<(), Fault> {
    db.busy_timeout(options.busy_timeout)?;
    db.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    db.pragma_update(None, "synchronous", options.durability.synchronous())?;
    db.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    db.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    db.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_MAX, |_| Ok(()))?;
    keep_statements(db)?;
    migrate(db)?;
    // Not before: a migration may sort more than there is room for.
    db.pragma_update(None, "temp_store", "memory")?;
    Ok(())
}

/// Prepares each statement once and keeps it. Without the planner's guarantee, SQLite would look at the values bound
/// to a statement that uses a partial index, and prepare it anew for each: most of the cost of an idle claim.
fn keep_statements(db: &Connection) -> Result<(), Fault> {
    db.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Finds what SQLite itself would only call "unable to open database file".
pub(super) fn check_place(path: &Path) -> Result<(), OpenError> {
    let unreachable = |why: String| OpenError::Unreachable { path: path.to_owned(), why };
    if path.as_os_str().is_empty() || path == Path::new(":memory:") {
        return Err(unreachable("a store is a file".to_owned()));
    }
    if path.is_dir() {
        return Err(unreachable("it is a directory".to_owned()));
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            Err(unreachable(format!("there is no directory {}; create it first", parent.display())))
        }
        _ => Ok(()),
    }
}
