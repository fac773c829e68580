//! What SQLite itself can do: the same statements on the same tables with the same durability and batches, and
//! nothing around them. The benchmark holds the engine against it.

use std::path::Path;

use redeliver_core::change::NewRow;
use redeliver_core::content::ContentSource;
use redeliver_core::{Lane, Timestamp};
use redeliver_engine::store::StoreError;
use rusqlite::types::Null;
use rusqlite::{Connection, params};

use super::errors::{Fault, OpenError, open_error, own, store_error};
use super::rows::bind_new;
use super::{OpenOptions, calls, limit, open};

/// A bare connection to a store of its own.
pub struct Bare {
    db: Connection,
}

impl Bare {
    /// Makes a store in a new file.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, OpenError> {
        let open = || -> Result<Connection, Fault> {
            let db = Connection::open(path)?;
            open::set_up_writer(&db, options)?;
            Ok(db)
        };
        Ok(Self { db: open().map_err(|fault| open_error(path, fault))? })
    }

    /// Inserts rows in one transaction.
    pub fn insert(&self, rows: &[NewRow]) -> Result<(), StoreError> {
        self.commit(|db| {
            let mut message = db.prepare_cached(include_str!("sql/insert_new.sql"))?;
            let mut content = db.prepare_cached(include_str!("sql/put_content.sql"))?;
            for row in rows {
                let ContentSource::Given(given) = &row.content else { continue };
                let Some(id) = own(&row.message.id) else { continue };
                bind_new(&mut message, id, &row.message, None)?;
                message.raw_execute()?;
                let number = db.last_insert_rowid();
                content.execute(params![number, given.target.as_deref(), Null, Null, Null, &*given.bytes])?;
            }
            Ok(())
        })
    }

    /// Leases up to `batch` due messages in one transaction and completes them in another. Says how many.
    pub fn claim_and_complete(&self, route: &str, batch: usize, now: Timestamp) -> Result<usize, StoreError> {
        let claimed = self.commit(|db| {
            let mut due = db.prepare_cached(include_str!("sql/due_trusted.sql"))?;
            let mut claim = db.prepare_cached(include_str!("sql/claim_trusted.sql"))?;
            let read = |row: &rusqlite::Row<'_>| {
                Ok((
                    (row.get::<_, i64>("number")?, row.get::<_, [u8; 16]>("id")?),
                    row.get::<_, i64>("fence")?,
                    row.get::<_, Vec<u8>>("bytes")?,
                ))
            };
            let found: Vec<_> = due
                .query_map(params![route, Lane::Medium as u8, now.as_ms(), limit(batch)], read)?
                .collect::<rusqlite::Result<_>>()?;
            for ((number, _), fence, _) in &found {
                claim.execute(params![number, fence + 1, 1, now.as_ms() + 60_000, now.as_ms()])?;
            }
            Ok(found)
        })?;
        self.commit(|db| {
            let mut complete = db.prepare_cached(include_str!("sql/apply_delivered.sql"))?;
            for ((_, id), fence, _) in &claimed {
                complete.execute(params![id, fence + 2, 1, fence + 1, now.as_ms(), Null, fence + 1])?;
            }
            Ok(())
        })?;
        Ok(claimed.len())
    }

    fn commit<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, StoreError> {
        calls::in_transaction(&self.db, work).map_err(|fault| store_error(&self.db, fault))
    }
}
