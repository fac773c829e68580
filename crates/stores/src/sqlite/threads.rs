//! Runs calls on threads: one that writes, one that syncs what was written, one that writes the log back, two that read.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use redeliver_engine::store::StoreError;
use rusqlite::Connection;
use tokio::sync::mpsc;

use super::Runs;
use super::calls::{Call, Work, call, stopped};
use super::checkpoint::Checkpoints;
use super::errors::{OpenError, open_error};
use super::health::Health;
use super::open::{OpenOptions, open_reader};
use super::sync::{self, Log};
use super::{reader, writer};

const READERS: usize = 2;

/// The threads of one open database. Dropping it finishes what is queued, then closes the file.
pub struct Threads {
    queues: Option<Queues>,
    next_reader: AtomicUsize,
    /// Readers first, so that the writer is the last to close the file and tidies up.
    threads: Vec<JoinHandle<()>>,
    commits: Arc<AtomicU64>,
    health: Health,
    _lock: Option<File>,
}

struct Queues {
    writer: mpsc::Sender<Box<dyn Call>>,
    readers: Vec<mpsc::Sender<Box<dyn Call>>>,
}

impl Threads {
    pub(super) fn start(
        path: &Path,
        db: Connection,
        options: &OpenOptions,
        lock: Option<File>,
        checkpoint_pages: i32,
    ) -> Result<Self, OpenError> {
        let no_thread = |error: std::io::Error| OpenError::Unreachable {
            path: path.to_owned(),
            why: format!("cannot start a thread: {error}"),
        };
        let health = Health::default();
        let mut readers = Vec::new();
        let mut threads = Vec::new();
        for _ in 0..READERS {
            let reader = reader::start(open_reader(path, options)?, &health).map_err(no_thread)?;
            readers.push(reader.queue);
            threads.push(reader.thread);
        }
        let log = match sync::of(&db, options.durability).map_err(|fault| open_error(path, fault))? {
            Some(sync) => {
                let (log, thread) = Log::synced_by(sync, &health).map_err(no_thread)?;
                threads.push(thread);
                log
            }
            None => Log::LeftAlone,
        };
        let (checkpoints, thread) =
            Checkpoints::start(&db, open_reader(path, options)?, checkpoint_pages, &health)
                .map_err(no_thread)?;
        threads.push(thread);
        let writer = writer::start(db, log, Some(checkpoints), &health).map_err(no_thread)?;
        threads.push(writer.thread);
        Ok(Self {
            queues: Some(Queues { writer: writer.queue, readers }),
            next_reader: AtomicUsize::new(0),
            threads,
            commits: writer.commits,
            health,
            _lock: lock,
        })
    }

    /// Why nobody answers: the thread has panicked, or everything is being closed.
    fn gone(&self) -> StoreError {
        self.health.state().err().unwrap_or_else(stopped)
    }

    /// How many transactions were tried so far.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

impl Runs for Threads {
    async fn write<T: Send + 'static>(&self, rows: usize, work: impl Work<T>) -> Result<T, StoreError> {
        let queues = self.queues.as_ref().ok_or_else(stopped)?;
        let (call, answer) = call(rows, work);
        queues.writer.send(call).await.map_err(|_| self.gone())?;
        answer.await.map_err(|_| self.gone())?.0
    }

    async fn read<T: Send + 'static>(&self, work: impl Work<T>) -> Result<T, StoreError> {
        let queues = self.queues.as_ref().ok_or_else(stopped)?;
        let next = self.next_reader.fetch_add(1, Ordering::Relaxed) % queues.readers.len();
        let (call, answer) = call(1, work);
        queues.readers[next].send(call).await.map_err(|_| self.gone())?;
        answer.await.map_err(|_| self.gone())?.0
    }

    async fn broken(&self) -> StoreError {
        self.health.broken().await
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.queues = None;
        for thread in self.threads.drain(..) {
            // One that panicked has said so already.
            let _ = thread.join();
        }
    }
}
