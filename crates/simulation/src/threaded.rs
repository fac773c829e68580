//! The SQLite store with its threads on a disk that fails as the seed has it: a sync that fails, and a power cut after which any
//! part of what was not synced is there, in any order.
//!
//! The disk is simulated where the store syncs its log. Threads take their turns as the machine has it, so that a seed draws
//! the same work and the same faults each time, but not the same interleaving. Writing the log back is not part of this:
//! `crates/stores/tests/power_cut` has it, below SQLite.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redeliver_core::accept::{NewMessage, admit};
use redeliver_core::change::NewRow;
use redeliver_core::policy::{Backoff, Jitter, Policy};
use redeliver_core::{Content, MessageId, Route, Timestamp};
use redeliver_engine::store::{Inserted, Store};
use redeliver_stores::{OpenOptions, Sqlite, SyncSqlite};

use crate::rng::Rng;
use crate::run::Report;
use crate::scenario::Scenario;

/// Callers at once, and how often each of them calls, at most.
const CALLERS: u64 = 4;
const CALLS_MAX: u64 = 6;
/// Messages in a call whose commit another thread syncs while the writer goes on.
const MANY: u64 = 150;
/// Keys that more than one caller uses.
const SHARED_KEYS: u64 = 8;
/// The least that a disk writes at once.
const SECTOR_BYTES: usize = 512;

/// Runs seeds, each on a file of its own.
pub fn on_threads() -> impl FnMut(u64) -> Report {
    run
}

/// Runs one seed.
pub fn run(seed: u64) -> Report {
    let mut report = Report::failed(seed, String::new());
    report.scenario = Scenario::draw(&mut Rng::new(seed));
    let place = std::env::temp_dir().join(format!("redeliver-threaded-{}-{seed}", std::process::id()));
    let result =
        fs::create_dir_all(&place).map_err(|error| error.to_string()).and_then(|()| story(seed, &place));
    let _ = fs::remove_dir_all(&place);
    match result {
        Ok(accepted) => {
            report.violation = None;
            report.figures.accepted = accepted;
        }
        Err(violation) => report.violation = Some(violation),
    }
    report
}

/// What the disk has, and what happened to it.
#[derive(Default)]
struct Disk {
    /// The log as of its last sync that succeeded.
    synced: Vec<u8>,
    syncs: u64,
    /// Whether a sync has failed: what it should have written is gone, and later ones succeed without writing it.
    has_failed: bool,
}

type SharedDisk = Arc<Mutex<Disk>>;

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn story(seed: u64, place: &Path) -> Result<u64, String> {
    let mut rng = Rng::new(seed ^ 0x7412_eade);
    let (path, log) = (place.join("store.db"), place.join("store.db-wal"));
    let disk = SharedDisk::default();
    let fails_at = rng.chance(500).then(|| rng.between(1, 12));
    let (its_own, its_log) = (Arc::clone(&disk), log.clone());
    let sync = move || sync(&its_own, &its_log, fails_at);
    let store = Sqlite::open_on(&path, OpenOptions::default(), Box::new(sync)).map_err(show)?;
    // Made durable by SQLite itself.
    let file = fs::read(&path).map_err(show)?;
    lock(&disk).synced = fs::read(&log).map_err(show)?;
    let store = Arc::new(store);
    let accepted: Arc<Mutex<Vec<MessageId>>> = Arc::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(show)?;
    let cut_after = rng.between(1, CALLERS * CALLS_MAX) as usize;
    let (before, image, written) = runtime.block_on(async {
        let mut calls = tokio::task::JoinSet::new();
        for caller in 0..CALLERS {
            let rng = Rng::new(rng.draw());
            calls.spawn(call(Arc::clone(&store), caller, rng, Arc::clone(&accepted)));
        }
        // The cut comes while calls are under way.
        while lock(&accepted).len() < cut_after && !calls.is_empty() {
            tokio::task::yield_now().await;
            while calls.try_join_next().is_some() {}
        }
        // In this order: what was answered before is in the image, or lost.
        let before = lock(&accepted).clone();
        let image = lock(&disk).synced.clone();
        let written = fs::read(&log).unwrap_or_default();
        calls.abort_all();
        (before, image, written)
    });
    drop(runtime);
    drop(store);
    let left = place.join("left");
    fs::create_dir(&left).map_err(show)?;
    fs::write(left.join("store.db"), file).map_err(show)?;
    fs::write(left.join("store.db-wal"), torn(&image, &written, &mut rng)).map_err(show)?;
    judge(&left.join("store.db"), &before)?;
    Ok(before.len() as u64)
}

fn sync(disk: &SharedDisk, log: &Path, fails_at: Option<u64>) -> io::Result<()> {
    let mut disk = lock(disk);
    disk.syncs += 1;
    if Some(disk.syncs) == fails_at {
        disk.has_failed = true;
        return Err(io::Error::other("simulated: the disk failed to sync"));
    }
    if !disk.has_failed {
        disk.synced = fs::read(log)?;
    }
    Ok(())
}

/// One caller: few messages, many, or keys that others use too.
async fn call(store: Arc<Sqlite>, caller: u64, mut rng: Rng, accepted: Arc<Mutex<Vec<MessageId>>>) {
    for n in 0..rng.between(1, CALLS_MAX) {
        let first = (caller * CALLS_MAX + n) * 2 * MANY;
        let rows: Vec<NewRow> = match rng.between(0, 3) {
            0 => (0..MANY).map(|n| row(first + n, &format!("own {}", first + n))).collect(),
            1 => vec![row(first, &format!("shared {}", rng.between(1, SHARED_KEYS)))],
            _ => (0..rng.between(1, 3)).map(|n| row(first + n, &format!("own {}", first + n))).collect(),
        };
        let ids: Vec<MessageId> = rows.iter().map(|row| row.message.id.clone()).collect();
        let Ok(answers) = store.insert(rows).await else { return };
        lock(&accepted).extend(ids.into_iter().zip(answers).map(|(id, answer)| match answer {
            Inserted::New => id,
            Inserted::Known(known) => known.id,
        }));
    }
}

fn row(n: u64, key: &str) -> NewRow {
    let policy = Policy {
        backoff: Backoff::Table(vec![]),
        jitter: Jitter::None,
        max_attempts: 1,
        expires_after: None,
    };
    let new = NewMessage { key: Some(key.into()), ..NewMessage::new("mail", Content::of_bytes("hello")) };
    let route = Route::new("mail", "nowhere", policy);
    admit(new, &route, MessageId::own(u128::from(n) + 1), None, Timestamp::from_ms(1_000))
}

/// The log as the disk may have it: what was synced, and of the sectors that were written since, any.
fn torn(synced: &[u8], written: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut torn = synced.to_vec();
    let share = rng.between(0, 1_000);
    for begin in (0..written.len()).step_by(SECTOR_BYTES) {
        let sector = begin..written.len().min(begin + SECTOR_BYTES);
        if synced.get(sector.clone()) != written.get(sector.clone()) && rng.chance(share) {
            torn.resize(torn.len().max(sector.end), 0);
            torn[sector.clone()].copy_from_slice(&written[sector]);
        }
    }
    torn
}

/// Opens what is left as an engine would: everything that was accepted must be there.
fn judge(path: &PathBuf, accepted: &[MessageId]) -> Result<(), String> {
    let store = SyncSqlite::open(path, OpenOptions::default()).map_err(show)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(show)?;
    runtime.block_on(async {
        for id in accepted {
            let is_there = store.get(id.clone()).await.map_err(show)?.is_some()
                && store.content(id.clone()).await.map_err(show)?.is_some();
            if !is_there {
                return Err(format!("accepted and lost in a power cut: {id}"));
            }
        }
        let found = store.examine().await.map_err(show)?;
        if found.is_whole() { Ok(()) } else { Err(format!("the file is damaged: {found:?}")) }
    })
}

fn show(error: impl std::fmt::Display) -> String {
    error.to_string()
}
