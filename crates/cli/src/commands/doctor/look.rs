//! Looks at a store: its file or database, and what is in it. Judges nothing.

use std::path::{Path, PathBuf};

use redeliver_core::gate::{GateKey, GateRecord};
use redeliver_core::{Lane, Name, Timestamp};
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::store::{Count, Store, StoreError};
use redeliver_stores::postgres::{Health, OpenError as PostgresError, Orphans, PostgresUrl};
use redeliver_stores::{Integrity, OpenError, Postgres, SqliteVersion, SyncSqlite};

use crate::config::{StoreConfig, StoreUrl};
use crate::wire::postgres_options;

/// Lost leases and overdue reports that are counted one by one.
pub(super) const LAPSED_COUNTED_MAX: usize = 1_000;

/// What was seen.
pub(super) enum Facts {
    /// There is nothing to look at from outside.
    Memory,
    /// There is no such file.
    Missing { path: PathBuf, room: Room },
    /// The file can't be opened.
    Closed { error: OpenError, room: Room },
    /// The file was opened.
    Open(Box<Open>),
    /// The database can't be opened.
    Unreached { error: PostgresError },
    /// The database was opened.
    Database(Box<Database>),
}

/// What was seen of a database.
pub(super) struct Database {
    pub(super) health: Result<Health, StoreError>,
    pub(super) orphans: Result<Orphans, StoreError>,
    pub(super) inside: Result<Inside, StoreError>,
}

/// What was seen of a file that could be opened.
pub(super) struct Open {
    pub(super) room: Room,
    /// The oldest SQLite that wrote to the file lately.
    pub(super) oldest_writer: Option<SqliteVersion>,
    /// What this machine's clock says.
    pub(super) wall: Timestamp,
    /// The latest time that the store has seen.
    pub(super) last_time: Option<Timestamp>,
    pub(super) integrity: Result<Integrity, StoreError>,
    pub(super) inside: Result<Inside, StoreError>,
}

/// What a file takes, and what is left beside it.
#[derive(Clone, Copy, Default)]
pub(super) struct Room {
    pub(super) file_bytes: u64,
    pub(super) log_bytes: u64,
    pub(super) free_bytes: Option<u64>,
}

/// What the store says of its messages.
#[derive(Default)]
pub(super) struct Inside {
    /// The time that engines on it have.
    pub(super) now: Timestamp,
    pub(super) counts: Vec<Count>,
    /// When the first message of each route is due, or was.
    pub(super) next_due: Vec<(Name, Timestamp)>,
    pub(super) lapsed: usize,
    /// Handed-off messages of which no report came in time.
    pub(super) overdue: usize,
    pub(super) gates: Vec<GateRecord>,
    pub(super) parked: Vec<GateKey>,
    pub(super) instances: u64,
}

impl Facts {
    /// How many messages stand where, as far as it could be seen.
    pub(super) fn counts(&self) -> &[Count] {
        match self {
            Self::Open(open) => open.inside.as_ref().map_or(&[], |inside| &inside.counts),
            Self::Database(database) => database.inside.as_ref().map_or(&[], |inside| &inside.counts),
            Self::Memory | Self::Missing { .. } | Self::Closed { .. } | Self::Unreached { .. } => &[],
        }
    }
}

pub(super) async fn look(config: &StoreConfig) -> Facts {
    match &config.url {
        StoreUrl::Memory => Facts::Memory,
        StoreUrl::Sqlite(path) => look_at_file(path).await,
        StoreUrl::Postgres(url) => look_at_database(url, config).await,
    }
}

async fn look_at_file(path: &Path) -> Facts {
    let room = room(path);
    if !path.exists() {
        return Facts::Missing { path: path.to_owned(), room };
    }
    // Before this process has a connection to the file, whose locks it would drop.
    let oldest_writer = redeliver_stores::oldest_writer(path);
    let store = match SyncSqlite::open_to_look(path) {
        Ok(store) => store,
        Err(error) => return Facts::Closed { error, room },
    };
    let last_time = store.last_time();
    let now = WallClock::new(last_time.unwrap_or_default()).now();
    Facts::Open(Box::new(Open {
        room,
        oldest_writer,
        wall: WallClock::new(Timestamp::default()).now(),
        last_time,
        integrity: store.examine().await,
        inside: inside(&store, now, store.instances(now).await).await,
    }))
}

async fn look_at_database(url: &PostgresUrl, config: &StoreConfig) -> Facts {
    let store = match Postgres::open_to_look(url.expose(), postgres_options(config)).await {
        Ok(store) => store,
        Err(error) => return Facts::Unreached { error },
    };
    let now = store.clock().now();
    Facts::Database(Box::new(Database {
        health: store.health().await,
        inside: inside(&store, now, store.instances(now).await).await,
        orphans: store.orphans().await,
    }))
}

async fn inside(
    store: &dyn Store,
    now: Timestamp,
    instances: Result<u64, StoreError>,
) -> Result<Inside, StoreError> {
    let counts = store.counts(now).await?;
    let mut routes: Vec<Name> = counts.iter().map(|count| count.route.clone()).collect();
    routes.sort();
    routes.dedup();
    let mut next_due = Vec::new();
    for route in routes {
        let mut first = None;
        for lane in Lane::ALL {
            first = store.next_due_at(route.clone(), lane).await?.into_iter().chain(first).min();
        }
        next_due.extend(first.map(|at| (route, at)));
    }
    Ok(Inside {
        now,
        counts,
        next_due,
        lapsed: store.lapsed(now, LAPSED_COUNTED_MAX).await?.len(),
        overdue: store.overdue(now, LAPSED_COUNTED_MAX).await?.len(),
        gates: store.gates().await?,
        parked: store.parked().await?,
        instances: instances?,
    })
}

fn room(path: &Path) -> Room {
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let beside = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let free = rustix::fs::statvfs(beside).ok().map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    Room { file_bytes: bytes(path), log_bytes: bytes(Path::new(&log)), free_bytes: free }
}
