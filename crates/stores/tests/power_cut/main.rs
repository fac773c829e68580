//! What was acknowledged survives a power cut.
//!
//! A process of its own keeps messages, and says of each when the store has acknowledged it. It is killed, and all that
//! it hadn't synced by then is thrown away, or torn: of what was written and not synced, any part may have reached the
//! disk. What is left must have every message that was acknowledged, whole.
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "this is a test")]

mod child;
mod cut;
mod image;
mod shim;

use std::path::Path;

use redeliver_core::State;
use redeliver_engine::store::{Filter, Store};
use redeliver_stores::{Durability, OpenOptions, Sqlite};

use crate::child::{Acknowledged, Job, content, id, key};
use crate::cut::{Cut, cut};
use crate::shim::Shim;

const CUTS: u64 = 30;
const CONTROL_CUTS: u64 = 6;

/// What a number of cuts came to.
#[derive(Debug, Default)]
struct Tally {
    cuts: u64,
    acknowledged: usize,
    lost: usize,
    /// Cuts that took something away that had been written.
    discarding: u64,
    discarded_bytes: u64,
}

impl Tally {
    fn add(&mut self, cut: &Cut, lost: &[Acknowledged]) {
        self.cuts += 1;
        self.acknowledged += cut.acknowledged.len();
        self.lost += lost.len();
        self.discarding += u64::from(cut.discarded_bytes > 0);
        self.discarded_bytes += cut.discarded_bytes;
    }
}

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    child::run_if_asked();
    let shim = Shim::build();
    let mut tally = Tally::default();
    for seed in 0..CUTS {
        let checkpoints = seed % 4 >= 2;
        let cut = cut(&shim, Job { seed, durability: Durability::Full, checkpoints });
        let place = tempfile::tempdir().unwrap();
        if seed % 2 == 0 {
            cut.image.restore(place.path());
        } else {
            cut.image.restore_torn(place.path(), seed);
        }
        let lost = judge(place.path(), &cut.acknowledged);
        assert!(lost.is_empty(), "cut {seed} lost {lost:?} of {}", cut.acknowledged.len());
        tally.add(&cut, &lost);
    }
    println!("{tally:?}");
    assert!(tally.discarding >= CUTS / 3, "too few cuts took anything away, so they show nothing");
}

/// The same cuts do harm where a commit is not synced: this test can fail.
#[test]
fn without_a_sync_a_power_cut_takes_what_was_acknowledged() {
    let shim = Shim::build();
    let mut tally = Tally::default();
    for seed in 0..CONTROL_CUTS {
        let cut = cut(&shim, Job { seed, durability: Durability::Relaxed, checkpoints: seed % 2 == 1 });
        let place = tempfile::tempdir().unwrap();
        cut.image.restore(place.path());
        tally.add(&cut, &judge(place.path(), &cut.acknowledged));
        let lost = judge(&cut.image.live, &cut.acknowledged);
        assert!(lost.is_empty(), "the end of the process alone must take nothing, but took {lost:?}");
    }
    println!("without a sync: {tally:?}");
    assert!(tally.lost > 0, "nothing was lost, so the cuts are none");
}

/// Opens what is left as an engine would, and says which acknowledged things are not there as they were.
fn judge(place: &Path, acknowledged: &[Acknowledged]) -> Vec<Acknowledged> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = Sqlite::open(place.join(child::FILE), OpenOptions::default()).unwrap();
        let found = store.examine().await.unwrap();
        assert!(found.is_whole(), "{found:?}");
        let mut lost = Vec::new();
        for thing in acknowledged {
            if !is_there(&store, thing).await {
                lost.push(thing.clone());
            }
        }
        lost
    })
}

async fn is_there(store: &Sqlite, thing: &Acknowledged) -> bool {
    match thing {
        Acknowledged::Accepted(n) => {
            let filter = Filter { key: Some(key(*n).into()), limit: 2, ..Filter::default() };
            let called = store.list(filter).await.unwrap();
            called.len() == 1
                && called[0].id == id(*n)
                && store.content(id(*n)).await.unwrap() == Some(content(*n))
        }
        Acknowledged::Delivered(id) => {
            let message = store.get(id.clone()).await.unwrap();
            message.is_some_and(|message| matches!(message.state, State::Delivered { .. }))
        }
    }
}
