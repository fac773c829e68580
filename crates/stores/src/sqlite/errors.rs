//! What can go wrong with a database file, in words for whoever has to do something about it.

use std::path::{Path, PathBuf};

use redeliver_core::MessageId;
use redeliver_engine::store::StoreError;
use rusqlite::{Connection, Error as SqlError, ErrorCode};

use crate::encode::Unreadable;

/// Why a call came to nothing, before anybody has said which file it was about.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// SQLite said so.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A row holds what no version of ours wrote.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The call makes no sense here.
    #[error("{0}")]
    Unfit(String),
}

/// Why a store could not be opened. The variants say what can be done.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Stop the other one, or use another file.
    #[error("cannot open store sqlite:{}: another redeliver is running on it (it holds {})", .path.display(), .lock.display())]
    Taken {
        /// The database.
        path: PathBuf,
        /// The lock that the other one holds.
        lock: PathBuf,
    },
    /// Wait, or find out who has it.
    #[error("cannot open store sqlite:{}: database is locked (is another redeliver running?)", .path.display())]
    Locked {
        /// The database.
        path: PathBuf,
    },
    /// Correct the path, or its permissions.
    #[error("cannot open store sqlite:{}: {why}", .path.display())]
    Unreachable {
        /// The database.
        path: PathBuf,
        /// What stands in the way.
        why: String,
    },
    /// Make room.
    #[error("cannot open store sqlite:{}: the disk is full", .path.display())]
    Full {
        /// The database.
        path: PathBuf,
    },
    /// Repair it.
    #[error("cannot open store sqlite:{}: {why}; restore it from a backup, or see `redeliver doctor`", .path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Use the version of redeliver that made it.
    #[error("cannot open store sqlite:{}: {why}", .path.display())]
    OtherVersion {
        /// The database.
        path: PathBuf,
        /// How it differs.
        why: String,
    },
}

/// The id's bytes, if it is one of ours.
pub(super) fn own(id: &MessageId) -> Option<&[u8; 16]> {
    match id {
        MessageId::Own(uuid) => Some(uuid.as_bytes()),
        MessageId::Row(_) => None,
    }
}

/// What a caller of the store is told.
pub(super) fn store_error(db: &Connection, fault: Fault) -> StoreError {
    let path = db.path().filter(|path| !path.is_empty()).unwrap_or("memory");
    match fault {
        Fault::Unfit(why) => StoreError::Unfit(why),
        Fault::Unreadable(error) => StoreError::Damaged(damaged(path, &error.to_string())),
        Fault::Sql(error) => match kind(&error) {
            Kind::Full => {
                StoreError::Full(format!("no room for sqlite:{path}; nothing that was accepted is lost"))
            }
            Kind::Damaged => StoreError::Damaged(damaged(path, &error.to_string())),
            Kind::Locked => StoreError::Unavailable(format!(
                "sqlite:{path}: database is locked (is another redeliver running?)"
            )),
            Kind::ReadOnly => StoreError::Unavailable(format!("sqlite:{path} cannot be written: {error}")),
            Kind::Other => StoreError::Unavailable(format!("sqlite:{path}: {error}")),
        },
    }
}

/// What whoever opens the store is told.
pub(super) fn open_error(path: &Path, fault: Fault) -> OpenError {
    let path = path.to_owned();
    let why = fault.to_string();
    match fault {
        Fault::Unfit(why) => OpenError::OtherVersion { path, why },
        Fault::Unreadable(_) => OpenError::Damaged { path, why },
        Fault::Sql(error) => match kind(&error) {
            Kind::Full => OpenError::Full { path },
            Kind::Damaged => OpenError::Damaged { path, why },
            Kind::Locked => OpenError::Locked { path },
            Kind::ReadOnly | Kind::Other => OpenError::Unreachable { path, why },
        },
    }
}

/// Whether SQLite could not sync a file. Trying again proves nothing: the kernel may have dropped the pages.
pub(super) fn is_failed_sync(fault: &Fault) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_FSYNC};
    match fault {
        Fault::Sql(SqlError::SqliteFailure(failure, _)) => {
            matches!(failure.extended_code, SQLITE_IOERR_FSYNC | SQLITE_IOERR_DIR_FSYNC)
        }
        Fault::Sql(_) | Fault::Unreadable(_) | Fault::Unfit(_) => false,
    }
}

fn damaged(path: &str, why: &str) -> String {
    format!("sqlite:{path}: {why}; restore it from a backup, or see `redeliver doctor`")
}

enum Kind {
    Full,
    Damaged,
    Locked,
    ReadOnly,
    Other,
}

fn kind(error: &SqlError) -> Kind {
    match error {
        SqlError::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => Kind::Full,
            // Growing the shared memory beside the log is the first thing that fails on a full disk.
            _ if failure.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => Kind::Full,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Kind::Damaged,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Kind::Locked,
            ErrorCode::ReadOnly => Kind::ReadOnly,
            _ => Kind::Other,
        },
        SqlError::FromSqlConversionFailure(..)
        | SqlError::IntegralValueOutOfRange(..)
        | SqlError::InvalidColumnType(..)
        | SqlError::Utf8Error(..) => Kind::Damaged,
        _ => Kind::Other,
    }
}
