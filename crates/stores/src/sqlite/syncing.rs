//! Nobody hears of a commit before the disk has it.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use futures_util::FutureExt;
use redeliver_conformance::make::{id, keyed, message, row};
use redeliver_engine::store::{Inserted, StoreError};
use rusqlite::Connection;
use tokio::sync::oneshot::Receiver as Answer;

use super::calls::{Work, call};
use super::errors::Fault;
use super::health::Health;
use super::insert;
use super::open::{OpenOptions, set_up_writer};
use super::sync::Log;
use super::writer::{self, Writer};

/// Rows enough for a commit that the writer doesn't wait for.
const MANY: u32 = 200;

/// What a call is answered, and the work that it was about.
type Told<T, W> = Answer<(Result<T, StoreError>, W)>;

/// A disk that syncs when it is told to, with the result that it is told.
struct Disk {
    writer: Writer,
    health: Health,
    begun: Receiver<()>,
    end: Sender<io::Result<()>>,
}

impl Disk {
    fn new() -> Self {
        Self::under(Connection::open_in_memory().unwrap())
    }

    fn under(db: Connection) -> Self {
        let (tell_begun, begun) = mpsc::channel();
        let (end, ends) = mpsc::channel::<io::Result<()>>();
        let ends = std::sync::Mutex::new(ends);
        let sync = move || {
            tell_begun.send(()).unwrap();
            ends.lock().unwrap().recv().unwrap()
        };
        let health = Health::default();
        let (log, _) = Log::synced_by(Box::new(sync), &health).unwrap();
        set_up_writer(&db, &OpenOptions::default()).unwrap();
        Self { writer: writer::start(db, log, None, &health).unwrap(), health, begun, end }
    }

    fn write<T: Send + 'static, W: Work<T>>(&self, work: W) -> Told<T, W> {
        let (call, answer) = call(1, work);
        self.writer.queue.blocking_send(call).unwrap();
        answer
    }

    fn insert(&self, numbers: std::ops::Range<u32>) -> Told<Vec<Inserted>, impl Work<Vec<Inserted>>> {
        let rows: Vec<_> = numbers.map(|n| row(message(n))).collect();
        self.write(move |db| insert::insert(db, &rows))
    }

    fn count(&self) -> Told<i64, impl Work<i64>> {
        self.write(|db: &Connection| -> Result<i64, Fault> {
            Ok(db.query_row("SELECT count(*) FROM redeliver_messages", [], |row| row.get(0))?)
        })
    }

    fn sync(&self, result: io::Result<()>) {
        self.begun.recv().unwrap();
        self.end.send(result).unwrap();
    }
}

/// Time enough for an answer that must not come.
fn a_moment() {
    (0..10_000).for_each(|_| std::thread::yield_now());
}

#[test]
fn a_commit_is_answered_after_its_sync() {
    for count in [1, MANY] {
        let disk = Disk::new();
        let mut accepted = disk.insert(0..count);
        disk.begun.recv().unwrap();
        a_moment();
        assert!(accepted.try_recv().is_err(), "{count} answered before the disk had them");
        disk.end.send(Ok(())).unwrap();
        assert_eq!(accepted.blocking_recv().unwrap().0.unwrap().len(), count as usize);
    }
}

#[test]
fn the_writer_goes_on_while_a_large_commit_is_synced() {
    let disk = Disk::new();
    let first = disk.insert(0..MANY);
    disk.begun.recv().unwrap();
    let mut second = disk.insert(MANY..2 * MANY);
    while disk.writer.commits.load(Ordering::Relaxed) < 2 {
        std::thread::yield_now();
    }
    // Whoever looks is told of both, as soon as the disk has them.
    let mut seen = disk.count();
    a_moment();
    assert!(second.try_recv().is_err() && seen.try_recv().is_err());
    for _ in 0..3 {
        disk.end.send(Ok(())).unwrap();
    }
    assert!(first.blocking_recv().unwrap().0.is_ok());
    assert_eq!(seen.blocking_recv().unwrap().0, Ok(i64::from(2 * MANY)));
    assert!(second.blocking_recv().unwrap().0.is_ok());
}

#[test]
fn what_changes_nothing_waits_for_no_sync() {
    let disk = Disk::new();
    // Nobody knows yet what others have synced.
    let first = disk.count();
    disk.sync(Ok(()));
    assert_eq!(first.blocking_recv().unwrap().0, Ok(0));
    assert_eq!(disk.count().blocking_recv().unwrap().0, Ok(0));
    assert!(disk.begun.try_recv().is_err());
}

/// Another process commits before it syncs, as we do, and may lose its power in between: nobody was told of it.
#[test]
fn a_duplicate_of_another_process_is_answered_after_its_commit_is_synced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let disk = Disk::under(Connection::open(&path).unwrap());
    let first = disk.count();
    disk.sync(Ok(()));
    first.blocking_recv().unwrap().0.unwrap();
    let other = Connection::open(&path).unwrap();
    let said = || vec![row(keyed(1, "said twice"))];
    assert_eq!(insert::insert(&other, &said()).unwrap(), [Inserted::New]);

    let rows = vec![row(keyed(2, "said twice"))];
    let mut answer = disk.write(move |db| insert::insert(db, &rows));
    let begun = disk.begun.recv_timeout(Duration::from_secs(10));
    assert!(begun.is_ok() && answer.try_recv().is_err(), "answered before the other's commit was synced");
    disk.end.send(Ok(())).unwrap();
    let answer = answer.blocking_recv().unwrap().0.unwrap();
    assert!(matches!(&answer[..], [Inserted::Known(known)] if known.id == id(1)), "{answer:?}");
    // What is synced is not synced again.
    assert_eq!(disk.count().blocking_recv().unwrap().0, Ok(1));
    assert!(disk.begun.try_recv().is_err());
}

/// The system tells of a failure once: a second sync would say that all is well.
#[test]
fn a_sync_beside_one_that_failed_answers_nobody() {
    let disk = Disk::new();
    let first = disk.insert(0..MANY);
    disk.begun.recv().unwrap();
    let second = disk.insert(MANY..MANY + 1);
    a_moment();
    disk.end.send(Err(io::Error::other("no such device"))).unwrap();
    disk.end.send(Ok(())).unwrap();
    assert!(first.blocking_recv().unwrap().0.is_err());
    assert!(second.blocking_recv().unwrap().0.is_err(), "answered by a sync that wrote nothing");
}

#[test]
fn after_a_sync_that_failed_nothing_is_taken() {
    for count in [1, MANY] {
        let disk = Disk::new();
        let accepted = disk.insert(0..count);
        disk.sync(Err(io::Error::other("no such device")));
        let error = accepted.blocking_recv().unwrap().0.unwrap_err();
        assert!(matches!(&error, StoreError::Broken(why) if why.contains("no such device")), "{error}");
        assert_eq!(disk.health.broken().now_or_never(), Some(error.clone()), "whoever watches hears it too");
        // Though the next sync would be glad to say that all is well.
        assert_eq!(disk.insert(MANY..MANY + 1).blocking_recv().unwrap().0, Err(error));
    }
}

#[test]
fn a_writer_that_panicked_has_broken_the_store() {
    let disk = Disk::new();
    assert_eq!(disk.health.broken().now_or_never(), None);
    let told = disk.write(|_: &Connection| -> Result<(), Fault> { panic!("a bug") });
    assert!(told.blocking_recv().is_err());
    let Disk { writer, health, .. } = disk;
    assert!(writer.thread.join().is_err());
    let error = health.broken().now_or_never().expect("it is known");
    assert!(error.to_string().contains("thread sqlite-writer panicked"), "{error}");
}
