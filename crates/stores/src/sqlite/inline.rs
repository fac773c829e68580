//! Runs calls where they are made: for simulations, which must do the same thing twice.

use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redeliver_engine::store::StoreError;
use rusqlite::Connection;

use super::Runs;
use super::calls::{Work, in_transaction};
use super::errors::store_error;

/// One connection that everybody shares.
pub struct Inline {
    db: Mutex<Connection>,
    _lock: Option<File>,
}

impl Inline {
    pub(super) fn new(db: Connection, lock: Option<File>) -> Self {
        Self { db: Mutex::new(db), _lock: lock }
    }

    pub(super) fn db(&self) -> MutexGuard<'_, Connection> {
        // A transaction that a panic cut short was rolled back on its way out.
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runs for Inline {
    async fn write<T: Send + 'static>(&self, _: usize, work: impl Work<T>) -> Result<T, StoreError> {
        let db = self.db();
        in_transaction(&db, work).map_err(|fault| store_error(&db, fault))
    }

    async fn read<T: Send + 'static>(&self, work: impl Work<T>) -> Result<T, StoreError> {
        let db = self.db();
        work(&db).map_err(|fault| store_error(&db, fault))
    }
}
