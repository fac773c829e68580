//! What the bare store can do, in rows a second: same tables, same durability, same batches, no engine.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use redeliver_core::accept::admit;
use redeliver_core::change::NewRow;
use redeliver_core::{MessageId, Timestamp};
use redeliver_engine::clock::{Clock, WallClock};
use redeliver_stores::OpenOptions;
use redeliver_stores::sqlite::bare::Bare;

use super::rig::{Place, message, remove, route, sync};

/// The bare store's rates.
pub(super) struct Ceiling {
    path: PathBuf,
    bare: Bare,
    now: Timestamp,
}

impl Ceiling {
    /// A bare store beside the benchmark's own; none for a store that has no statements to say.
    pub(super) fn of(place: &Place) -> anyhow::Result<Option<Self>> {
        let Place::Sqlite(path) = place else { return Ok(None) };
        let path = path.with_extension("bare");
        remove(&path);
        let bare = Bare::open(&path, &OpenOptions::default())?;
        Ok(Some(Self { path, bare, now: WallClock::new(Timestamp::default()).now() }))
    }

    /// Inserts `count` rows in transactions of `batch`.
    pub(super) fn insert(&self, count: usize, batch: usize) -> anyhow::Result<f64> {
        let mut spent = Duration::ZERO;
        for from in (0..count).step_by(batch) {
            let rows: Vec<NewRow> = (from..count.min(from + batch)).map(|n| self.row(n)).collect();
            let begun = Instant::now();
            self.bare.insert(&rows)?;
            spent += begun.elapsed();
        }
        Ok(count as f64 / spent.as_secs_f64())
    }

    /// Waits until what was inserted is on the disk.
    pub(super) fn settle(&self) {
        sync(&self.path);
    }

    /// Claims and completes everything that is due, in transactions of `batch`.
    pub(super) fn drain(&self, batch: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let mut count = 0;
        loop {
            match self.bare.claim_and_complete("bench", batch, self.now.plus(Duration::from_secs(60)))? {
                0 => return Ok(count as f64 / begun.elapsed().as_secs_f64()),
                more => count += more,
            }
        }
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
        remove(&self.path);
    }
}
