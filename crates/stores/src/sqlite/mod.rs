//! Messages in a SQLite file.
//!
//! What each call does is a function over a connection, one file per concern, and knows nothing of threads:
//! [`insert_in`] runs it in the caller's own transaction, [`Sqlite`] on a writer thread that commits many calls at
//! once, [`SyncSqlite`] where it is called. Statements are in `sql/`, one per file.

mod access;
mod apply;
pub mod bare;
mod bulk;
mod calls;
mod campaigns;
mod checkpoint;
mod claim;
mod destination_limits;
mod errors;
mod files;
mod gates;
#[cfg(test)]
mod group_commit;
mod health;
mod inline;
mod insert;
mod instances;
mod integrity;
mod look;
mod migrate;
mod notes;
mod open;
#[cfg(test)]
mod plans;
mod prune;
mod quotas;
mod read;
mod reader;
mod rows;
mod suppressions;
mod sync;
#[cfg(test)]
mod syncing;
pub mod table;
mod threads;
mod version;
mod writer;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use redeliver_core::attempt::AttemptRecord;
use redeliver_core::bulk::Bulk;
use redeliver_core::change::{Audit, NewRow};
use redeliver_core::edit::EditRecord;
use redeliver_core::gate::{GateKey, GateRecord};
use redeliver_core::limit::Grant;
use redeliver_core::{Change, Content, InstanceId, Lane, Message, MessageId, Name, Timestamp};
use redeliver_engine::store::{
    About, Applied, ClaimRef, ClaimRequest, Claims, Count, Deed, DeedFilter, Filter, GateChange, Inserted,
    LimitRequest, Living, PruneRequest, Pruned, Store, StoreError,
};
use rusqlite::Connection;

use calls::Work;
pub use errors::OpenError;
use errors::{Fault, open_error, store_error};
pub use inline::Inline;
pub use insert::insert_in;
pub use integrity::Integrity;
pub use open::{Durability, OpenOptions, Role, is_held};
pub use threads::Threads;
pub use version::{SQLITE_MIN, SqliteVersion, oldest_writer};

/// A store in a SQLite file, with threads of its own.
pub type Sqlite = SqliteOn<Threads>;

/// A store in a SQLite file or in memory that does everything where it is called.
pub type SyncSqlite = SqliteOn<Inline>;

/// A store in SQLite, and what runs its calls.
pub struct SqliteOn<R> {
    runs: R,
    last_time: Option<Timestamp>,
    seen_version: AtomicI64,
    outside: Outside,
}

/// What runs calls: a write in a transaction whose commit is answered, a read beside it.
pub trait Runs: Send + Sync + 'static {
    /// Does work of about so many rows in a transaction.
    fn write<T: Send + 'static>(
        &self,
        rows: usize,
        work: impl Work<T>,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Does work that writes nothing.
    fn read<T: Send + 'static>(
        &self,
        work: impl Work<T>,
    ) -> impl Future<Output = Result<T, StoreError>> + Send;

    /// Ends when no call can succeed any more until the process is started again, with the reason.
    fn broken(&self) -> impl Future<Output = StoreError> + Send {
        std::future::pending()
    }
}

impl Sqlite {
    /// Opens the store in a file, making it if there is none.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let (db, lock, first) = open_first(path, &options)?;
        Ok(first.with(Threads::start(path, db, &options, lock, open::CHECKPOINT_PAGES)?))
    }

    /// The same with another length of the log at which it is written back, for simulations.
    #[cfg(feature = "planted")]
    pub fn open_with_checkpoints(
        path: impl AsRef<Path>,
        options: OpenOptions,
        checkpoint_pages: i32,
    ) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let (db, lock, first) = open_first(path, &options)?;
        Ok(first.with(Threads::start(path, db, &options, lock, checkpoint_pages)?))
    }

    /// How many transactions were tried so far; calls that come together share one.
    pub fn commits(&self) -> u64 {
        self.runs.commits()
    }
}

impl SyncSqlite {
    /// Opens the store in a file, making it if there is none.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self, OpenError> {
        let (db, lock, first) = open_first(path.as_ref(), &options)?;
        Ok(first.with(Inline::new(db, lock)))
    }

    /// A store that lives as long as this value.
    pub fn in_memory() -> Result<Self, OpenError> {
        let path = Path::new(":memory:");
        let open = || -> Result<_, Fault> {
            let db = Connection::open_in_memory()?;
            open::set_up_writer(&db, &OpenOptions::default())?;
            let first = First::look(&db)?;
            Ok(first.with(Inline::new(db, None)))
        };
        open().map_err(|fault| open_error(path, fault))
    }

    /// Forgets everything: a fresh store for less than the price of one.
    pub fn clear(&self) -> Result<(), StoreError> {
        let db = self.runs.db();
        let clear = |db: &Connection| Ok(db.execute_batch(include_str!("sql/clear.sql"))?);
        calls::in_transaction(&db, clear).map_err(|fault| store_error(&db, fault))
    }
}

impl<R: Runs> SqliteOn<R> {
    /// The latest time that was persisted before this store was opened. No clock may go behind it.
    pub fn last_time(&self) -> Option<Timestamp> {
        self.last_time
    }

    /// Looks whether the database is whole. Reads all of it.
    pub async fn examine(&self) -> Result<Integrity, StoreError> {
        self.runs.read(integrity::examine).await
    }
}

/// What is known of a database when it has just been opened.
struct First {
    last_time: Option<Timestamp>,
    version: i64,
}

impl First {
    fn look(db: &Connection) -> Result<Self, Fault> {
        Ok(Self { last_time: instances::last_time(db)?, version: data_version(db)? })
    }

    fn with<R>(self, runs: R) -> SqliteOn<R> {
        SqliteOn {
            runs,
            last_time: self.last_time,
            seen_version: AtomicI64::new(self.version),
            outside: Outside::default(),
        }
    }
}

fn open_first(
    path: &Path,
    options: &OpenOptions,
) -> Result<(Connection, Option<std::fs::File>, First), OpenError> {
    open::check_place(path)?;
    version::check_linked(path)?;
    let lock = match options.role {
        Role::Engine => Some(open::lock(path)?),
        Role::Client => None,
    };
    let db = open::open_writer(path, options)?;
    let look = || -> Result<First, Fault> {
        if options.role == Role::Engine {
            instances::forget_all(&db)?;
        }
        First::look(&db)
    };
    let first = look().map_err(|fault| open_error(path, fault))?;
    Ok((db, lock, first))
}

/// Counts how often somebody outside has written.
#[derive(Default)]
struct Outside(AtomicU64);

impl Outside {
    /// Every how many times the log is searched for the version of whoever writes.
    const LOOK_EVERY: u64 = 600;

    fn is_worth_a_look(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(Self::LOOK_EVERY)
    }
}

/// A number that changes when another connection has committed, and not when this one has.
fn data_version(db: &Connection) -> Result<i64, Fault> {
    Ok(db.pragma_query_value(None, "data_version", |row| row.get(0))?)
}

/// A count as SQLite takes it.
fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[async_trait]
impl<R: Runs> Store for SqliteOn<R> {
    async fn insert(&self, rows: Vec<NewRow>) -> Result<Vec<Inserted>, StoreError> {
        let written = |row| insert::Written::of(&row).map(|written| (row, written));
        let rows = rows.into_iter().map(written).collect::<Result<Vec<_>, _>>();
        let rows = rows.map_err(|error| StoreError::Unfit(error.to_string()))?;
        self.runs.write(rows.len(), move |db| insert::insert_written(db, &rows)).await
    }

    async fn claim(&self, request: ClaimRequest) -> Result<Claims, StoreError> {
        self.runs.write(request.limit, move |db| claim::claim(db, &request)).await
    }

    async fn start(&self, claim: ClaimRef, now: Timestamp) -> Result<bool, StoreError> {
        self.runs.write(1, move |db| claim::start(db, &claim, now)).await
    }

    async fn renew(&self, claims: Vec<ClaimRef>, until_at: Timestamp) -> Result<Vec<bool>, StoreError> {
        self.runs.write(claims.len(), move |db| claim::renew(db, &claims, until_at)).await
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<Vec<Applied>, StoreError> {
        self.runs.write(changes.len(), move |db| apply::apply(db, &changes)).await
    }

    async fn note(&self, id: MessageId, record: AttemptRecord) -> Result<(), StoreError> {
        self.runs.write(1, move |db| apply::note(db, &id, &record)).await
    }

    async fn lapsed(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.runs.read(move |db| read::lapsed(db, now, limit)).await
    }

    async fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.runs.read(move |db| read::overdue(db, now, limit)).await
    }

    async fn expired(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
        self.runs.read(move |db| read::expired(db, now, limit)).await
    }

    async fn parked(&self) -> Result<Vec<GateKey>, StoreError> {
        self.runs.read(gates::parked).await
    }

    async fn release(&self, gate: GateKey, limit: usize) -> Result<usize, StoreError> {
        self.runs.write(limit, move |db| gates::release(db, &gate, limit)).await
    }

    async fn gates(&self) -> Result<Vec<GateRecord>, StoreError> {
        self.runs.read(gates::gates).await
    }

    async fn put_gate(&self, change: GateChange) -> Result<bool, StoreError> {
        self.runs.write(1, move |db| gates::put_gate(db, &change)).await
    }

    async fn draw_limit(&self, request: LimitRequest) -> Result<Grant, StoreError> {
        self.runs.write(1, move |db| destination_limits::draw_limit(db, &request)).await
    }

    async fn forget_limits(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.runs.write(1, move |db| destination_limits::forget_limits(db, now)).await
    }

    async fn prune(&self, request: PruneRequest) -> Result<Pruned, StoreError> {
        self.runs.write(request.limit, move |db| prune::prune(db, &request)).await
    }

    async fn beat(
        &self,
        instance: InstanceId,
        now: Timestamp,
        silent_max: Duration,
    ) -> Result<(), StoreError> {
        self.runs.write(1, move |db| instances::beat(db, instance, now, silent_max)).await
    }

    async fn introduce(&self, instance: InstanceId, about: About) -> Result<(), StoreError> {
        self.runs.write(1, move |db| instances::introduce(db, instance, &about)).await
    }

    async fn living(&self, now: Timestamp) -> Result<Vec<Living>, StoreError> {
        self.runs.read(move |db| instances::living(db, now)).await
    }

    async fn leave(&self, instance: InstanceId) -> Result<(), StoreError> {
        self.runs.write(1, move |db| instances::leave(db, instance)).await
    }

    async fn get(&self, id: MessageId) -> Result<Option<Message>, StoreError> {
        self.runs.read(move |db| read::get(db, &id)).await
    }

    async fn content(&self, id: MessageId) -> Result<Option<Content>, StoreError> {
        self.runs.read(move |db| read::content(db, &id)).await
    }

    async fn attempts(&self, id: MessageId) -> Result<Vec<AttemptRecord>, StoreError> {
        self.runs.read(move |db| read::attempts(db, &id)).await
    }

    async fn edits(&self, id: MessageId) -> Result<Vec<EditRecord>, StoreError> {
        self.runs.read(move |db| read::edits(db, &id)).await
    }

    async fn list(&self, filter: Filter) -> Result<Vec<Message>, StoreError> {
        self.runs.read(move |db| read::list(db, &filter)).await
    }

    async fn counts(&self, now: Timestamp) -> Result<Vec<Count>, StoreError> {
        self.runs.read(move |db| read::counts(db, now)).await
    }

    async fn next_due_at(&self, route: Name, lane: Lane) -> Result<Option<Timestamp>, StoreError> {
        SqliteOn::next_due_at(self, route, lane).await
    }

    async fn put_bulk(&self, bulk: Bulk, audit: Option<Audit>) -> Result<bool, StoreError> {
        self.runs.write(1, move |db| bulk::put(db, &bulk, audit.as_ref())).await
    }

    async fn bulk(&self, id: Arc<str>) -> Result<Option<Bulk>, StoreError> {
        self.runs.read(move |db| bulk::get(db, &id)).await
    }

    async fn bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        self.runs.read(move |db| bulk::newest(db, after.as_deref(), limit)).await
    }

    async fn running_bulks(&self, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Bulk>, StoreError> {
        self.runs.read(move |db| bulk::running(db, after.as_deref(), limit)).await
    }

    async fn deeds(&self, filter: DeedFilter) -> Result<Vec<Deed>, StoreError> {
        self.runs.read(move |db| read::deeds(db, &filter)).await
    }

    async fn broken(&self) -> StoreError {
        self.runs.broken().await
    }

    async fn changed_outside(&self) -> Result<bool, StoreError> {
        // The writer's own connection is the one that doesn't notice its own commits.
        let version = self.runs.write(1, data_version).await?;
        let has_changed = self.seen_version.swap(version, Ordering::Relaxed) != version;
        if has_changed && self.outside.is_worth_a_look() {
            self.runs.read(version::warn_of_old_writers).await?;
        }
        Ok(has_changed)
    }
}
