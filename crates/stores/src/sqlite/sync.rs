//! Sees to it that a commit is on the disk before anybody hears of it.
//!
//! SQLite would sync its log within each commit, and the thread that writes would wait. Here it commits without, and the log is synced
//! afterwards: by the writer itself if the commit was small, so that calls pile up meanwhile and share the next one; by another
//! thread if it was large, while the writer goes on. A sync is good for everything that was written before it began,
//! and whatever is read in a transaction was written before that, so that an answer is never ahead of what it rests on.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{Builder, JoinHandle};

use redeliver_core::planted::{self, Bug};
use redeliver_engine::store::StoreError;
use rusqlite::Connection;

use super::calls::{Call, answer_all};
use super::errors::Fault;
use super::health::Health;
use super::{Durability, data_version};

/// Rows that a commit has changed from which on the writer doesn't wait for its sync: as much work as a sync takes time.
const LARGE: u64 = 256;

/// Commits that wait for their sync, at most; then the writer waits, too.
const WAITING_MAX: usize = 4;

/// Brings to the disk whatever was written.
pub type Sync = Box<dyn Fn() -> io::Result<()> + Send + std::marker::Sync>;

/// The log, and who syncs it.
pub(super) enum Log {
    /// SQLite does, or nobody.
    LeftAlone,
    /// We do.
    Synced {
        shared: Arc<Shared>,
        large: mpsc::SyncSender<Vec<Box<dyn Call>>>,
        /// The writer's data version when somebody else's commits were last seen to be synced.
        synced_version: Cell<Option<i64>>,
    },
}

/// What both threads know of the log.
pub(super) struct Shared {
    sync: Sync,
    /// Held while one of the threads syncs.
    syncing: Mutex<()>,
    /// Commits that the other thread has been given and not answered yet.
    unanswered: AtomicUsize,
    /// A planted bug; the threads of the store don't see what is planted on the thread that opens it.
    planted: Option<Bug>,
    /// After a failed sync, what was written before it may or may not be there, so nothing is taken from then on.
    health: Health,
}

impl Log {
    /// A log that is synced in this way, and the thread for it. It ends when the log is dropped and everything is answered.
    pub(super) fn synced_by(sync: Sync, health: &Health) -> io::Result<(Self, JoinHandle<()>)> {
        let shared = Arc::new(Shared {
            sync,
            syncing: Mutex::new(()),
            unanswered: AtomicUsize::new(0),
            planted: planted::planted(),
            health: health.clone(),
        });
        let (large, waiting) = mpsc::sync_channel(WAITING_MAX);
        let its_own = shared.clone();
        let thread = Builder::new().name("sqlite-sync".to_owned()).spawn(move || {
            let _watched = its_own.health.watch("sqlite-sync");
            while let Ok(first) = waiting.recv() {
                let together: Vec<_> = std::iter::once(first).chain(waiting.try_iter()).collect();
                let done = its_own.sync();
                for calls in together {
                    answer_all(calls, &done);
                    its_own.unanswered.fetch_sub(1, Ordering::Release);
                }
            }
        })?;
        Ok((Self::Synced { shared, large, synced_version: Cell::new(None) }, thread))
    }

    /// Whether this bug is planted.
    pub(super) fn has(&self, bug: Bug) -> bool {
        matches!(self, Self::Synced { shared, .. } if shared.planted == Some(bug))
    }

    /// Replies to calls that are committed on this connection and changed so many rows, once everything is synced that the
    /// replies rest on.
    pub(super) fn committed(&self, db: &Connection, calls: Vec<Box<dyn Call>>, changed: u64) {
        let Self::Synced { shared, large, synced_version } = self else { return answer_all(calls, &Ok(())) };
        if self.has(Bug::AnswersBeforeSync) {
            answer_all(calls, &Ok(()));
            let _ = shared.sync();
        } else if changed >= LARGE {
            shared.unanswered.fetch_add(1, Ordering::Relaxed);
            // The thread is there as long as this is. If it were not, its callers would hear that the store is closed.
            let _ = large.send(calls);
        } else if changed == 0
            && shared.unanswered.load(Ordering::Acquire) == 0
            && !has_changed_outside(db, synced_version)
        {
            answer_all(calls, &shared.health.state());
        } else {
            answer_all(calls, &shared.sync());
        }
    }
}

/// Whether another connection has committed since this was last asked. It may not have synced its commit yet, so that a
/// reply that rests on it, such as that a message is a duplicate, waits for a sync of ours.
fn has_changed_outside(db: &Connection, synced_version: &Cell<Option<i64>>) -> bool {
    let version = data_version(db).ok();
    version.is_none() || synced_version.replace(version) != version
}

impl Shared {
    fn sync(&self) -> Result<(), StoreError> {
        // The system tells of a failure once. A sync beside the one that failed, or right after it, would succeed without having
        // written anything.
        let _alone = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        self.health.state()?;
        match (self.sync)() {
            Err(_) if self.planted == Some(Bug::FailedSyncIgnored) => Ok(()),
            result => result.map_err(|error| self.health.sync_failed(&error)),
        }
    }
}

/// How to sync the log of a connection whose commits are to survive a power cut; it no longer does so itself. Nothing if it keeps no log.
pub(super) fn of(db: &Connection, durability: Durability) -> Result<Option<Sync>, Fault> {
    let mode: String = db.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let Some(path) = db.path().filter(|_| durability == Durability::Full && mode == "wal") else {
        return Ok(None);
    };
    let log = format!("{path}-wal");
    let unreachable = |error: io::Error| Fault::Unfit(format!("cannot open {log} to sync it: {error}"));
    let file = File::options().read(true).write(true).open(&log).map_err(unreachable)?;
    // SQLite still syncs the log before it writes it back into the database, and when it begins it anew.
    db.pragma_update(None, "synchronous", Durability::Relaxed.synchronous())?;
    Ok(Some(Box::new(move || file.sync_data())))
}
