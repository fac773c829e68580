//! What the bare store can do, in rows a second: same tables, same durability, same batches, no engine.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use redeliver_core::accept::admit;
use redeliver_core::change::NewRow;
use redeliver_core::{MessageId, Timestamp};
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_stores::OpenOptions;
use redeliver_stores::postgres::bare::Bare as BareDatabase;
use redeliver_stores::sqlite::bare::Bare as BareFile;

use super::rig::{Place, message, remove, route, sync};

/// The bare store's rates.
pub(super) struct Ceiling {
    bare: Bare,
    now: Timestamp,
}

enum Bare {
    /// A file beside the benchmark's own.
    File { path: PathBuf, bare: BareFile },
    /// The benchmark's own database, before or after an engine has it.
    Database(BareDatabase),
}

impl Ceiling {
    /// A bare store, empty; none for a store that has no statements to say.
    pub(super) async fn of(place: &Place) -> anyhow::Result<Option<Self>> {
        let bare = match place {
            Place::Memory => return Ok(None),
            Place::Sqlite(path) => {
                let path = path.with_extension("bare");
                remove(&path);
                Bare::File { bare: BareFile::open(&path, &OpenOptions::default())?, path }
            }
            Place::Postgres(url) => {
                drop(place.fresh().await?);
                Bare::Database(BareDatabase::open(url).await?)
            }
        };
        Ok(Some(Self { bare, now: WallClock::new(Timestamp::default()).now() }))
    }

    /// Inserts `count` rows in transactions of `batch`.
    pub(super) async fn insert(&mut self, count: usize, batch: usize) -> anyhow::Result<f64> {
        let mut spent = Duration::ZERO;
        for from in (0..count).step_by(batch) {
            let rows: Vec<NewRow> = (from..count.min(from + batch)).map(|n| self.row(n)).collect();
            let begun = Instant::now();
            match &mut self.bare {
                Bare::File { bare, .. } => bare.insert(&rows)?,
                Bare::Database(bare) => bare.insert(&rows).await?,
            }
            spent += begun.elapsed();
        }
        Ok(count as f64 / spent.as_secs_f64())
    }

    /// Waits until what was inserted is on the disk. A database keeps its own time.
    pub(super) fn settle(&self) {
        if let Bare::File { path, .. } = &self.bare {
            sync(path);
        }
    }

    /// Claims and completes everything that is due, in transactions of `batch`.
    pub(super) async fn drain(&self, batch: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let now = self.now.plus(Duration::from_secs(60));
        let count = match &self.bare {
            Bare::File { bare, .. } => {
                let mut count = 0;
                loop {
                    match bare.claim_and_complete("bench", batch, now)? {
                        0 => break count,
                        more => count += more,
                    }
                }
            }
            Bare::Database(bare) => bare.drain("bench", batch, now).await?,
        };
        Ok(count as f64 / begun.elapsed().as_secs_f64())
    }

    fn row(&self, n: usize) -> NewRow {
        let mut bits = [0; 10];
        bits[2..].copy_from_slice(&(n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        // Ids sort by time, as those of the engine do.
        let at = Timestamp::from_ms(self.now.as_ms() + n as i64 / 100);
        admit(message(Some(self.now)), &route(), MessageId::fresh(at, bits), None, at)
    }
}

impl Drop for Ceiling {
    fn drop(&mut self) {
        if let Bare::File { path, .. } = &self.bare {
            remove(path);
        }
    }
}
