//! Looks at a database without changing it, for `redeliver doctor`.

use std::time::Duration;

use redeliver_engine::clock::{Clock, FollowedClock};
use redeliver_engine::store::StoreError;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::connections::ask;
use super::errors::{Fault, OpenError, open_error};
use super::open::{Address, OpenOptions};
use super::rows::{get, time};
use super::{Postgres, migrate};

/// Rows that miss each other are counted up to here.
pub const ORPHANS_COUNTED_MAX: u64 = 1_000;

/// How a database is, whatever is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// PostgreSQL's version.
    pub version: String,
    /// The tables, by name.
    pub tables: Vec<TableHealth>,
    /// Indexes that are missing, or that PostgreSQL doesn't use because they were never finished.
    pub missing_indexes: Vec<String>,
    /// Whoever keeps dead rows from being cleared away, who looks furthest back first.
    pub holders: Vec<Holder>,
    /// By how many milliseconds this machine's time of day is ahead of the database's.
    pub ahead_ms: i64,
}

/// How a table is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableHealth {
    /// Its name.
    pub name: String,
    /// Rows that are there, about.
    pub live: u64,
    /// Rows that are gone and still take room, about.
    pub dead: u64,
    /// How often it was read as a whole.
    pub whole_reads: u64,
    /// How often it was read by an index.
    pub index_reads: u64,
    /// What it takes on disk, with its indexes.
    pub bytes: u64,
}

/// A session, a prepared transaction, a replication slot or a standby that still needs the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Who it is, as PostgreSQL names it.
    pub who: String,
    /// For how long, where that is known.
    pub since: Option<Duration>,
    /// How many transactions have begun since.
    pub transactions: u64,
}

/// Rows that miss each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Contents whose message is gone: wasted room.
    pub contents: u64,
    /// Keys of messages that are gone though nobody pruned them.
    pub keys: u64,
    /// Messages without a content: they would go out empty.
    pub messages: u64,
}

impl Postgres {
    /// Opens a store that is there, beside whoever works on it. Makes nothing and changes nothing.
    pub async fn open_to_look(url: &str, options: OpenOptions) -> Result<Self, OpenError> {
        let direct = Address::read(options.direct_url.as_deref().unwrap_or(url), &options)?;
        let clock = FollowedClock::new();
        let look = async {
            let (db, driven) = direct.connect().await?;
            let current = async {
                migrate::check_current(&db).await?;
                super::instances::set_clock(&db, &clock).await
            };
            let current = current.await;
            driven.abort();
            current
        };
        look.await.map_err(|fault| open_error(&direct.place, &fault))?;
        Self::join(url, options, clock, direct).await
    }

    /// How the database is.
    pub async fn health(&self) -> Result<Health, StoreError> {
        ask!(self, |db| look(db, &self.clock))
    }

    /// Rows that miss each other. Reads whole tables.
    pub async fn orphans(&self) -> Result<Orphans, StoreError> {
        ask!(self, |db| orphans(db))
    }
}

async fn look(db: &Client, clock: &FollowedClock) -> Result<Health, Fault> {
    let version = db.query_typed_one("SHOW server_version", &[]).await?;
    let asked_at = clock.uptime();
    let said = db.query_typed_one(include_str!("sql/clock.sql"), &[]).await?;
    let ahead_ms = clock.follow(time(&said, 0)?, asked_at);
    let tables = db.query_typed(include_str!("sql/health_tables.sql"), &[]).await?;
    let found = db.query_typed(include_str!("sql/health_indexes.sql"), &[]).await?;
    let found: Vec<&str> = found.iter().map(|row| get(row, 0)).collect::<Result<_, _>>()?;
    let missing = migrate::indexes().into_iter().filter(|name| !found.contains(name));
    let holders = db.query_typed(include_str!("sql/health_holders.sql"), &[]).await?;
    Ok(Health {
        version: get::<&str>(&version, 0)?.to_owned(),
        tables: tables.iter().map(table).collect::<Result<_, _>>()?,
        missing_indexes: missing.map(str::to_owned).collect(),
        holders: holders.iter().map(held_by).collect::<Result<_, _>>()?,
        ahead_ms,
    })
}

fn table(row: &tokio_postgres::Row) -> Result<TableHealth, Fault> {
    let number = |column| get::<i64>(row, column).map(|number| number.max(0).unsigned_abs());
    Ok(TableHealth {
        name: get::<&str>(row, 0)?.to_owned(),
        live: number(1)?,
        dead: number(2)?,
        whole_reads: number(3)?,
        index_reads: number(4)?,
        bytes: number(5)?,
    })
}

fn held_by(row: &tokio_postgres::Row) -> Result<Holder, Fault> {
    let since = get::<Option<i64>>(row, 1)?;
    Ok(Holder {
        who: get::<&str>(row, 0)?.to_owned(),
        since: since.map(|seconds| Duration::from_secs(seconds.max(0).unsigned_abs())),
        transactions: get::<i64>(row, 2)?.max(0).unsigned_abs(),
    })
}

async fn orphans(db: &Client) -> Result<Orphans, Fault> {
    let limit = ORPHANS_COUNTED_MAX as i64;
    let row =
        db.query_typed_one(include_str!("sql/health_orphans.sql"), &[(&limit as _, Type::INT8)]).await?;
    let number = |column| get::<i64>(&row, column).map(i64::unsigned_abs);
    Ok(Orphans { contents: number(0)?, keys: number(1)?, messages: number(2)? })
}
