//! The one thread that writes. While a commit waits for the disk, calls pile up, and the next commit is theirs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use redeliver_core::planted::Bug;
use rusqlite::Connection;
use tokio::sync::mpsc;

use super::calls::{Call, answer_all, in_transaction};
use super::checkpoint::Checkpoints;
use super::errors::{is_failed_sync, store_error};
use super::files::Files;
use super::health::Health;
use super::sync::Log;

/// Calls that wait, at most. Whoever comes then waits before the door.
const QUEUE_MAX: usize = 1_024;

/// Rows after which a commit takes no further call, so that nobody's answer waits long for somebody else's rows.
const COMMIT_ROWS_MAX: usize = 2_000;

/// The way to the thread that writes.
pub(super) struct Writer {
    pub(super) queue: mpsc::Sender<Box<dyn Call>>,
    pub(super) thread: JoinHandle<()>,
    pub(super) commits: Arc<AtomicU64>,
}

/// Starts the thread. It ends when nobody holds its queue any more and the queue is empty.
pub(super) fn start(
    db: Connection,
    log: Log,
    checkpoints: Option<Checkpoints>,
    health: &Health,
) -> io::Result<Writer> {
    let (queue, mut calls) = mpsc::channel(QUEUE_MAX);
    let commits = Arc::new(AtomicU64::new(0));
    let counter = commits.clone();
    let health = health.clone();
    let files = Files::of(&db);
    let thread = Builder::new().name("sqlite-writer".to_owned()).spawn(move || {
        let _watched = health.watch("sqlite-writer");
        while let Some(first) = calls.blocking_recv() {
            let calls = together(first, &mut calls);
            match files.check() {
                Ok(()) => commit_together(&db, &log, &health, calls),
                gone => answer_all(calls, &gone),
            }
            counter.fetch_add(1, Ordering::Relaxed);
            if let Some(checkpoints) = &checkpoints {
                checkpoints.after_commit(&db);
            }
        }
    })?;
    Ok(Writer { queue, thread, commits })
}

/// The first call and those that came in the meantime.
fn together(first: Box<dyn Call>, calls: &mut mpsc::Receiver<Box<dyn Call>>) -> Vec<Box<dyn Call>> {
    let mut rows = first.rows();
    let mut together = vec![first];
    while rows < COMMIT_ROWS_MAX
        && let Ok(next) = calls.try_recv()
    {
        rows += next.rows();
        together.push(next);
    }
    together
}

/// Does all calls in one transaction and has them answered when the disk has it. If one of them fails, each gets one of its own.
fn commit_together(db: &Connection, log: &Log, health: &Health, mut calls: Vec<Box<dyn Call>>) {
    let state = health.state();
    if state.is_err() {
        return answer_all(calls, &state);
    }
    let before = db.total_changes();
    let all = in_transaction(db, |db| calls.iter_mut().try_for_each(|call| call.execute(db)));
    match all {
        Ok(()) => log.committed(db, calls, db.total_changes() - before),
        Err(fault) if is_failed_sync(&fault) => answer_all(calls, &Err(health.sync_failed(&fault))),
        Err(_) if log.has(Bug::FailedCommitAnswered) => answer_all(calls, &Ok(())),
        Err(_) if calls.len() > 1 => {
            calls.into_iter().for_each(|call| commit_together(db, log, health, vec![call]));
        }
        Err(fault) => answer_all(calls, &Err(store_error(db, fault))),
    }
}
