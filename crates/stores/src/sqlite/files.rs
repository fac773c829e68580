//! Notices that the files of an open database were removed, renamed or replaced. SQLite would go on with files that have no
//! name any more, and everything in them would be gone with the process.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use redeliver_engine::store::StoreError;
use rusqlite::Connection;

/// The database and its log as they were when it was opened. A database in memory has none.
pub(super) struct Files(Vec<(PathBuf, FileId)>);

/// Device and number: what a file keeps for its whole life.
type FileId = (u64, u64);

impl Files {
    /// The files of a connection that has written.
    pub(super) fn of(db: &Connection) -> Self {
        let path = db.path().filter(|path| !path.is_empty());
        let names = path.into_iter().flat_map(|path| [path.to_owned(), format!("{path}-wal")]);
        Self(names.filter_map(|name| Some((PathBuf::from(&name), id_of(name.as_ref())?))).collect())
    }

    /// Fails unless each file is where it was. That costs a microsecond or two, and a commit takes much longer.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match self.0.iter().find(|(path, id)| id_of(path) != Some(*id)) {
            None => Ok(()),
            Some((path, _)) => Err(StoreError::Unavailable(format!(
                "{} was removed or replaced while redeliver used it; move it back, or stop redeliver and restore it from a \
                 backup",
                path.display()
            ))),
        }
    }
}

/// Asks by name: opening and closing the file would drop SQLite's locks.
fn id_of(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
