//! Looks at a store without changing it, for `redeliver doctor`.

use std::path::Path;

use redeliver_core::{Lane, Name, Timestamp};
use redeliver_engine::store::{ClaimKind, StoreError};

use super::errors::{Fault, open_error};
use super::{First, Inline, OpenError, OpenOptions, Runs, SqliteOn, SyncSqlite};
use super::{claim, instances, migrate, open};

impl SyncSqlite {
    /// Opens a store that is there, beside whoever works on it. Makes nothing and changes nothing.
    pub fn open_to_look(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        open::check_place(path)?;
        let db = open::open_reader(path, &OpenOptions::default())?;
        let look = || -> Result<First, Fault> {
            migrate::check_current(&db)?;
            First::look(&db)
        };
        let first = look().map_err(|fault| open_error(path, fault))?;
        Ok(first.with(Inline::new(db, None)))
    }
}

impl<R: Runs> SqliteOn<R> {
    /// How many engines live, as far as was heard by `now`.
    pub async fn instances(&self, now: Timestamp) -> Result<u64, StoreError> {
        self.runs.read(move |db| instances::alive(db, now)).await
    }

    /// When the first message of a lane is due, or was, that neither waits for a gate nor is claimed.
    pub async fn next_due_at(&self, route: Name, lane: Lane) -> Result<Option<Timestamp>, StoreError> {
        let next = move |db: &rusqlite::Connection| {
            let trusted = claim::next_due_at(db, ClaimKind::Trusted, &route, lane)?;
            let suspect = claim::next_due_at(db, ClaimKind::Suspect, &route, lane)?;
            Ok(trusted.into_iter().chain(suspect).min())
        };
        self.runs.read(next).await
    }
}
