//! Writes the log back into the database, so that it begins anew, and holds up nobody for it.
//!
//! Left to itself, SQLite does so within a commit, and everybody waits for as long as the disk takes. Here a thread of its own does it
//! while commits go on, and the writer only does the rest: what was committed meanwhile. Only then may the log begin anew.

use std::cell::Cell;
use std::ffi::c_int;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::errors::Fault;
use super::health::Health;

thread_local! {
    /// Pages in the log after this thread's last commit, until somebody has looked.
    static PAGES: Cell<c_int> = const { Cell::new(0) };
}

/// What the writer has of it.
pub(super) struct Checkpoints {
    begin: SyncSender<()>,
    /// Whether the thread has written back all that there was when it began.
    has_ended: Arc<AtomicBool>,
    is_under_way: Cell<bool>,
    /// Pages in the log from which on it is written back.
    pages_max: c_int,
    health: Health,
}

impl Checkpoints {
    /// Starts the thread, on a connection of its own, and takes over from the writer's. It ends when this is dropped.
    pub(super) fn start(
        writer: &Connection,
        own: Connection,
        pages_max: c_int,
        health: &Health,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let (begin, begun) = mpsc::sync_channel(1);
        let has_ended = Arc::new(AtomicBool::new(false));
        let tell = has_ended.clone();
        let its_own = health.clone();
        let thread = Builder::new().name("sqlite-log".to_owned()).spawn(move || {
            let _watched = its_own.watch("sqlite-log");
            while begun.recv().is_ok() {
                write_back(&own, &its_own);
                tell.store(true, Ordering::Release);
            }
        })?;
        writer.wal_hook(Some(look));
        let health = health.clone();
        Ok((Self { begin, has_ended, is_under_way: Cell::new(false), pages_max, health }, thread))
    }

    /// Begins to write the log back if it has become long, and ends what was begun.
    pub(super) fn after_commit(&self, writer: &Connection) {
        if self.has_ended.swap(false, Ordering::Acquire) {
            write_back(writer, &self.health);
            self.is_under_way.set(false);
        } else if PAGES.take() >= self.pages_max && !self.is_under_way.get() {
            self.is_under_way.set(self.begin.try_send(()).is_ok());
        }
    }
}

/// As SQLite itself does: whether it could is no concern of the commit before it. What could not be written back stays in the log,
/// and is tried again after the next one. Only a sync that failed is not tried again: it would succeed without having written.
fn write_back(db: &Connection, health: &Health) {
    let passive = || -> Result<(), Fault> {
        Ok(db.prepare_cached(include_str!("sql/write_back.sql"))?.query_row([], |_| Ok(()))?)
    };
    if let Err(fault) = passive() {
        health.check(&fault);
    }
}

fn look(_: &Wal, pages: c_int) -> rusqlite::Result<()> {
    PAGES.set(pages);
    Ok(())
}
