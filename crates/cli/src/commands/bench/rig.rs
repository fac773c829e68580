//! An engine for one job, over a store of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use redeliver_core::accept::NewMessage;
use redeliver_core::policy::{Backoff, Jitter};
use redeliver_core::{Content, Name, Policy, Route, Timestamp};
use redeliver_engine::campaigns::Campaigns;
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_engine::emit::Silence;
use redeliver_engine::intake::Sink;
use redeliver_engine::memory::MemoryStore;
use redeliver_engine::stop::stop_pair;
use redeliver_engine::store::Store;
use redeliver_engine::transport::Transport;
use redeliver_engine::{Engine, Line, Settings};
use redeliver_stores::postgres::bare::Bare;
use redeliver_stores::postgres::{OpenOptions as PostgresOptions, PostgresUrl};
use redeliver_stores::{OpenOptions, Postgres, Sqlite};

use super::carrier::Carrier;
use crate::drive::drive;

/// Where stores are kept.
pub(super) enum Place {
    Memory,
    Sqlite(PathBuf),
    Postgres(PostgresUrl),
}

/// A store, and the time that counts there.
pub(super) struct Opened {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
}

/// The bytes of each message.
pub(super) const BODY_BYTES: usize = 200;
/// Messages accepted, claimed and settled at once, at most.
pub(super) const BATCH: usize = 1_000;

impl Place {
    /// A new, empty store.
    pub(super) async fn fresh(&self) -> anyhow::Result<Opened> {
        match self {
            Self::Memory => Ok(Opened::on_this_machine(Arc::new(MemoryStore::default()))),
            Self::Sqlite(path) => {
                remove(path);
                let store = Sqlite::open(path, OpenOptions::default())
                    .context("cannot make the benchmark's store")?;
                Ok(Opened::on_this_machine(Arc::new(store)))
            }
            Self::Postgres(url) => {
                Bare::open(url).await?.drop_store().await?;
                open(url).await
            }
        }
    }

    /// The database, where the store is in one.
    pub(super) async fn database(&self) -> anyhow::Result<Option<Bare>> {
        match self {
            Self::Memory | Self::Sqlite(_) => Ok(None),
            Self::Postgres(url) => Ok(Some(Bare::open(url).await?)),
        }
    }

    /// Waits until what was written is on the disk, so that the next job doesn't pay for it. A database keeps its own
    /// time.
    pub(super) fn settle(&self) {
        if let Self::Sqlite(path) = self {
            sync(path);
        }
    }

    /// Deletes what the benchmark has made.
    pub(super) async fn clean(&self) -> anyhow::Result<()> {
        match self {
            Self::Memory => {}
            Self::Sqlite(path) => remove(path),
            Self::Postgres(url) => Bare::open(url).await?.drop_store().await?,
        }
        Ok(())
    }
}

impl Opened {
    fn on_this_machine(store: Arc<dyn Store>) -> Self {
        Self { store, clock: WallClock::new(Timestamp::default()) }
    }
}

/// One more instance on a database, which gets its tables if it has none.
pub(super) async fn open(url: &PostgresUrl) -> anyhow::Result<Opened> {
    let store = Postgres::open(url.expose(), PostgresOptions::default()).await?;
    let clock = store.clock();
    Ok(Opened { store: Arc::new(store), clock })
}

/// Waits until a database is on the disk. A file that isn't there has nothing to wait for.
pub(super) fn sync(path: &Path) {
    for file in files(path) {
        let _ = std::fs::File::open(file).and_then(|file| file.sync_all());
    }
}

/// Deletes a database with everything that belongs to it. What isn't there needs no deleting.
pub(super) fn remove(path: &Path) {
    for file in files(path) {
        let _ = std::fs::remove_file(file);
    }
}

fn files(path: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-wal", "-shm", ".lock"].into_iter().map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        name.into()
    })
}

/// The route of every job: tries follow one another at once, and many are in the air.
pub(super) fn route() -> Route {
    let policy = Policy {
        backoff: Backoff::Table(vec![Duration::ZERO]),
        jitter: Jitter::None,
        max_attempts: 5,
        expires_after: None,
    };
    Route { concurrency_max: 6 * BATCH, ..Route::new("bench", "bench", policy) }
}

/// An engine with one route to a carrier.
pub(super) struct Rig {
    pub(super) engine: Arc<Engine>,
    pub(super) carrier: Arc<Carrier>,
}

impl Rig {
    pub(super) fn new(opened: Opened, carrier: Carrier) -> anyhow::Result<Self> {
        Self::with(opened, Arc::new(carrier))
    }

    /// An engine to a carrier that others may have too.
    pub(super) fn with(opened: Opened, carrier: Arc<Carrier>) -> anyhow::Result<Self> {
        Self::on(opened, carrier, route())
    }

    /// An engine with a route of the job's own.
    pub(super) fn on(opened: Opened, carrier: Arc<Carrier>, route: Route) -> anyhow::Result<Self> {
        let engine = Arc::new(engine(opened, &carrier, route)?);
        Ok(Self { engine, carrier })
    }

    /// An engine that knows campaigns, with a route of the job's own.
    pub(super) fn for_campaigns(
        opened: Opened,
        carrier: Carrier,
        route: Route,
        campaigns: Arc<dyn Campaigns>,
    ) -> anyhow::Result<Self> {
        let carrier = Arc::new(carrier);
        let engine = engine(opened, &carrier, route)?.with_campaigns(campaigns);
        Ok(Self { engine: Arc::new(engine), carrier })
    }

    /// Accepts `count` messages in batches, each due at what `due_at` says of its number.
    pub(super) async fn fill(
        &self,
        count: usize,
        due_at: impl Fn(usize) -> Timestamp,
        mut progress: impl FnMut(usize),
    ) -> anyhow::Result<()> {
        let mut done = 0;
        while done < count {
            let size = BATCH.min(count - done);
            let batch = (done..done + size).map(|n| message(Some(due_at(n)))).collect();
            self.engine.accept(batch).await?;
            done += size;
            progress(done);
        }
        Ok(())
    }

    /// Runs the engine until its carrier has delivered `count` messages.
    pub(super) async fn run_until_delivered(
        &self,
        count: usize,
        progress: impl Fn(usize),
    ) -> anyhow::Result<()> {
        let (stopper, stop) = stop_pair();
        let wait = async {
            while self.carrier.delivered() < count {
                progress(self.carrier.delivered());
                self.engine.clock().sleep(Duration::from_millis(20)).await;
            }
            stopper.stop();
        };
        let (driven, ()) = tokio::join!(drive(&self.engine, &stopper, stop), wait);
        driven
    }
}

fn engine(opened: Opened, carrier: &Arc<Carrier>, route: Route) -> anyhow::Result<Engine> {
    let Opened { store, clock } = opened;
    let transports: HashMap<Name, Arc<dyn Transport>> =
        HashMap::from([("bench".into(), Arc::clone(carrier) as Arc<dyn Transport>)]);
    let line = Line::new(route, &transports, Vec::new())
        .map_err(|name| anyhow::anyhow!("the benchmark has no transport {name}"))?;
    let settings = Settings { claim_batch_max: BATCH, ..Settings::default() };
    Ok(Engine::new(store, clock, Arc::new(Silence), settings, vec![line]))
}

/// A message of the benchmark.
pub(super) fn message(due_at: Option<Timestamp>) -> NewMessage {
    let mut content = Content::of_bytes(vec![b'x'; BODY_BYTES]);
    content.target = Some("somewhere".into());
    NewMessage { due_at, ..NewMessage::new("bench", content) }
}
